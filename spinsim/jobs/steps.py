"""Runs whose rows are measurements of replicas under changing conditions: some of their rows, and recounted ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.given import set_spins
from spinsim.result import result_of
from spinsim.sampling import InField
from spinsim.sampling.measure import Measurement, measure
from spinsim.saved import saved_of
from spinsim.store.contents import MEASUREMENTS, has_rows
from spinsim.store.files import CONFIGURATIONS


def with_rows(result: Any, which: Any) -> Any:
    """Return a run with only some of its rows, by numbers or a slice, and without configurations."""
    group = result.record.group(MEASUREMENTS)
    rows = {name: one.values[which] for name, one in group.arrays.items() if has_rows(one)}
    some = result.record.replaced({f"{MEASUREMENTS}/{name}": values for name, values in rows.items()})
    some.groups.pop(CONFIGURATIONS, None)
    return result_of(result.job, some, result.model)


def recounted(result: Any, device: str, threads: int | None) -> Any:
    """Return the run restricted to its saved rows, with measurements recounted from the saved spins."""
    configurations, rows = saved_of(result)
    make = partial(create_engine, replicas=configurations.shape[2], dynamics=Dynamics(), device=device, threads=threads)
    engine, measured = InField(make(result.model), make), []
    for number, row in enumerate(rows):
        if result.field is not None:
            engine.set_field(float(result.field[row]))
        set_spins(engine, configurations.row(number))
        measured.append(measure(engine))
    counted = zip(Measurement._fields, map(np.stack, zip(*measured, strict=True)), strict=True)
    values = {f"{MEASUREMENTS}/{name}": array for name, array in counted if getattr(result, name) is not None}
    return result_of(result.job, with_rows(result, rows).record.replaced(values), result.model)
