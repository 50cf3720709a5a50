"""The page that has every setting, or with ``--signatures`` the stub of the calls in Python.

They make docs/reference/settings.md and spinsim/signatures.pyi.
"""

from __future__ import annotations

import sys

import spinsim
from spinsim.registry import FOLDERS, record_of
from spinsim.settings.document import page, signatures

if __name__ == "__main__":
    if sys.argv[1:] == ["--signatures"]:
        sys.stdout.write(signatures(getattr(spinsim, name) for name in FOLDERS))
    else:
        sys.stdout.write(page(record_of(name).config for name in FOLDERS))
