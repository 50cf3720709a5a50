"""``python -m spinsim.settings > docs/settings.md``: the page that has every setting."""

from __future__ import annotations

import sys

from spinsim.settings.document import page
from spinsim.settings.jobs import JOBS

if __name__ == "__main__":
    sys.stdout.write(page(JOBS))
