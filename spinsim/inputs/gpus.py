"""GPUs as users ask for them."""

from __future__ import annotations

import re
from typing import Final

from spinsim.errors import InputError

_FORM: Final = re.compile(r"all|0*[1-9][0-9]{0,4}|([0-9]{1,5},)+([0-9]{1,5})?")


def check_gpus(gpus: str) -> None:
    """Refuse what names no GPUs: ``all``, how many, or their numbers with commas, of which the last may end the list.

    Raises:
        InputError: for it.
    """
    if not _FORM.fullmatch(gpus):
        raise InputError(f"gpus {gpus!r} cannot be read: give all, how many such as 2, or their numbers such as 0,2")
