"""``python -m spinsim.settings > docs/settings.md``: the page that has every setting."""

from __future__ import annotations

import sys

from spinsim.registry import FOLDERS, record_of
from spinsim.settings.document import page

if __name__ == "__main__":
    sys.stdout.write(page(record_of(name).config for name in FOLDERS))
