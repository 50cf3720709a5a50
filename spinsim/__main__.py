"""``python -m spinsim``."""

from __future__ import annotations

from spinsim.cli import program

program()
