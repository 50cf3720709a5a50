"""Where the checkout and the data of the tests are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
SUPPORT: Final = ROOT / "tests" / "support"
