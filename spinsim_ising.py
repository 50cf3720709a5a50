"""The start of the ``spinsim`` command, and a check that its package is whole, which must stand outside the package.

Another program has the name ``spinsim`` on the Python index. Its distribution installs a package of that name too, so
that whichever is installed last replaces files of the other one.
"""

from __future__ import annotations

import os
import sys
from typing import Final

MIXED: Final = (
    "the distribution spinsim, another program, is or was installed in the same environment and shares files with "
    "spinsim-ising: uninstall both, then install spinsim-ising alone"
)
_FOLDER: Final = os.path.dirname(os.path.abspath(__file__))


def check() -> None:
    """Look for the other program where this one is installed; zip archives and frozen programs hold this one alone.

    Raises:
        ImportError: where it is there, or has taken a file of this one with it.
    """
    if getattr(sys, "frozen", False) or not os.path.isdir(_FOLDER):
        return
    names = (name for name in os.listdir(_FOLDER) if name.startswith("spinsim-") and name.endswith(".dist-info"))
    if not os.path.isfile(os.path.join(_FOLDER, "spinsim", "__init__.py")) or any(map(_is_other, names)):
        raise ImportError(MIXED)


def _is_other(name: str) -> bool:
    """Tell the other program by its files; early versions of this one had its name."""
    try:
        with open(os.path.join(_FOLDER, name, "RECORD"), encoding="utf-8") as file:
            files = file.read()
    except OSError:
        return False
    return "spinsim/__init__.py" in files and "spinsim/cli/" not in files


def program() -> None:
    """Run the command line, or say in one sentence that it cannot be run: exit status 2."""
    try:
        check()
    except ImportError as error:
        sys.stderr.write(f"spinsim: {error}\n")
        sys.exit(2)
    from spinsim.cli import program

    program()
