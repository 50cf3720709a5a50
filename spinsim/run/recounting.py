"""Counting again what a run has measured, from the configurations that it has saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.given import set_spins
from spinsim.engine.measuring.correlations import WITHOUT_TIMES, Wanted
from spinsim.engine.protocols import present_measurement
from spinsim.errors import InputError
from spinsim.result import Result
from spinsim.run.ladder_layout import Measured, row_of
from spinsim.sampling.tempering import frame_of
from spinsim.saved import Configurations, configurations


def saved_of(result: Result) -> tuple[Configurations, npt.NDArray[np.int64]]:
    """Returns the configurations of a run and the rows of its series at which they were saved.

    Raises:
        InputError: where there are none.
    """
    found = configurations(result)
    if not len(found):
        raise InputError(f"the run has not come to its first saved configurations, at every {found.every} steps: go on")
    return found, (np.arange(found.shape[0]) + 1) * found.every - 1


def recounted_on_ladder(
    result: Any,
    beta: npt.NDArray[np.float64],
    table: Sequence[Measured],
    device: str,
    threads: int | None,
    wanted: Wanted = WITHOUT_TIMES,
) -> Any:
    """Returns a run on a ladder with its saved measurements alone, counted anew by an engine that is given the spins.

    Replica c T + k of the engine is copy c at place k of T, as no exchange has taken place there.

    Args:
        result: The run, a dataclass with ``sweep`` and ``permutation``.
        beta: The ladder, from the coldest.
        table: Quantities that the run measures.
        device: Where it is counted.
        threads: CPU threads, None for all.
        wanted: Kind of measurement beside overlaps.
    """
    found, rows = saved_of(result)
    model, (copies, places) = result.model, found.shape[2:]
    engine = create_engine(model, copies * places, Dynamics(), device, threads, slabs=False, round_sweeps=1)
    engine.set_ladder(beta, copies)
    engine.prepare_measurements(1, wanted)
    row = row_of(table)
    unexchanged, measured = engine.begin_exchange()(), []
    for number, sweep in enumerate(result.sweep[rows]):
        set_spins(engine, found.row(number).reshape(model.samples, copies * places, model.sites), unexchanged)
        measured.append(row(frame_of(number, int(sweep), present_measurement(engine, wanted))))
    series: dict[str, Any] = {}
    for name in measured[0].keys() - {"step", "permutation"}:
        recorded, counted = getattr(result, name), np.stack([each[name] for each in measured])
        was_measured = counted.shape[1:] == recorded.shape[1:]
        series[name] = counted.astype(recorded.dtype) if was_measured else recorded[rows]
    if own := getattr(result, "measured", {}):
        series["measured"] = {name: values[rows] for name, values in own.items()}
    return replace(result, **series, permutation=result.permutation[rows], configurations=None)
