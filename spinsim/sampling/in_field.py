"""Replicas in a uniform field that changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spinsim.engine.choosing import choose_packing
from spinsim.engine.protocols import Engine
from spinsim.errors import InputError
from spinsim.model.ising import Ising


class InField:
    """An ``Engine`` of a model in a uniform field that is set as often as one likes.

    It stands for an engine of the model in the present field, which takes over the configurations and the count of
    half-sweeps of the one before: acceptance knows the field, random numbers do not.

    Args:
        engine: Of the model itself.
        make: Gives an engine of another model with as many replicas of as many samples on the same device.

    Attributes:
        field: The present one, which is added to the model's own.
    """

    def __init__(self, engine: Engine, make: Callable[[Ising], Engine]) -> None:
        self._model, self._engine, self._make = engine.model, engine, make
        self.field = 0.0

    def check(self, field: float) -> Ising:
        """The model in a field.

        Raises:
            InputError: where the field would round the couplings away.
        """
        model = self._model.in_field(field)
        model.field_changes = field != 0
        if _is_rounded(model, self._model):
            raise InputError(
                f"field {field:g} is so large that the couplings of {model.name} would be rounded away beside it: "
                "give a smaller one"
            )
        return model

    def set_field(self, field: float) -> None:
        """Set the field."""
        if field == self.field:
            return
        model, saved = self.check(field), self._engine.snapshot()
        del self._engine  # the next one may need its room
        self._engine, self.field = self._make(model), field
        self._engine.restore(saved)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_engine"], name)


def _is_rounded(model: Ising, without: Ising) -> bool:
    """Whether the couplings of a model are of other sizes in a field than without it.

    Graphs of large degrees, and of couplings and fields that are few units, have another update in a field that
    changes, which holds spins alike; all others have the same.
    """
    if choose_packing(model) == choose_packing(without):
        return False
    if model.terms is not None or without.weights is None:
        return True
    return model.weights is None or not np.array_equal(model.weights[1], without.weights[1])
