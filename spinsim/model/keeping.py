"""What follows from a model alone: worked out once, and kept with the model as long as that lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, cast

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spinsim.model.ising import Ising

MOST_KEPT: Final = 2**20
"""Bonds and sites of all samples up to which a model keeps what follows from it.

Of larger models a run takes so long that doing it again costs nothing, and memory counts.
"""

Made = TypeVar("Made")
Given = TypeVarTuple("Given")
Array = TypeVar("Array", bound=npt.NDArray[Any])


class Keeping:
    """The part of ``Ising`` that keeps what was made of it; copies, on other ranks too, begin with nothing."""

    def once(self, make: Callable[[Ising, *Given], Made], *given: *Given) -> Made:
        """What ``make`` returns for the model and whatever else is given, hashable and seldom anything new.

        Who calls it changes nothing of what is returned.
        """
        model = cast("Ising", self)
        if model.samples * (model.bonds + model.sites) > MOST_KEPT:
            return make(model, *given)
        kept: dict[Any, Made] = vars(self).setdefault("_kept", {})
        key = make, given
        if key not in kept:
            kept[key] = make(model, *given)
        return kept[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}


def own(array: Array) -> Array:
    """An array that its giver does not change later, as what is kept follows from it: a small one is copied.

    One that cannot be written to may be a view of another that can be, so that it is copied as well; but a number that
    stands for all of a row, of which there is nothing to be gained by writing it out.
    """
    if array.size > 2 * MOST_KEPT:  # a bond has two ends
        return array
    if array.ndim and array.strides[-1] == 0:
        return np.broadcast_to(array[..., :1].copy(), array.shape)  # type: ignore[return-value]
    return array.copy()


def frozen(array: Array) -> Array:
    """The same for one that its holder does not change either: a small one is a copy that cannot be written to."""
    mine = own(array)
    if mine is not array:
        mine.flags.writeable = False
    return mine
