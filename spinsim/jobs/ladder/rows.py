"""Measurements of a ladder as rows of a file, as series of a result, and counted anew from saved configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.given import set_spins
from spinsim.engine.protocols import present_measurement
from spinsim.observables.measured import Measured, quantities_of
from spinsim.sampling import TemperFrame
from spinsim.saved import saved_of


def row_of(measured: Sequence[Measured], frame: TemperFrame) -> dict[str, Any]:
    """Returns a measurement as a row of the file."""
    always = {"step": frame.step, "sweep": frame.sweep, "permutation": frame.measurement.holder}
    return always | {one.name: one.of(frame) for one in measured}


def all_series(
    in_time: bool, found: Mapping[str, Any], rows: int, shape: tuple[int, int, int]
) -> dict[str, npt.NDArray[Any]]:
    """Returns the first rows of all quantities, those that were not measured without pairs, copies or the last axis.

    Args:
        in_time: True if the run is of space and time.
        found: Series that there are.
        rows: How many.
        shape: Samples, copies, places.
    """
    return {
        one.name: found[one.name][:rows] if one.name in found else one.nothing(rows, shape)
        for one in quantities_of(in_time)
    }


def recounted(result: Any, device: str, threads: int | None) -> Any:
    """Returns a run with its saved measurements alone, counted anew by an engine that is given the spins.

    Replica c T + k of the engine is copy c at place k of T, as no exchange has taken place there.

    Args:
        result: The run, a ``LadderResult``.
        device: Where it is counted.
        threads: CPU threads, None for all.
    """
    found, rows = saved_of(result)
    model, (copies, places), wanted = result.model, found.shape[2:], result.choice.wanted
    engine = create_engine(model, copies * places, Dynamics(), device, threads, slabs=False, round_sweeps=1)
    engine.set_ladder(result.places.couplings, copies)
    engine.prepare_measurements(1, wanted)
    unexchanged, measured = engine.begin_exchange()(), []
    for number, sweep in enumerate(result.sweep[rows]):
        set_spins(engine, found.row(number).reshape(model.samples, copies * places, model.sites), unexchanged)
        frame = TemperFrame(number, int(sweep), present_measurement(engine, wanted))
        measured.append(row_of(quantities_of(bool(wanted.times)), frame))
    series: dict[str, Any] = {}
    for name in measured[0].keys() - {"step", "permutation"}:
        recorded, counted = getattr(result, name), np.stack([each[name] for each in measured])
        was_measured = counted.shape[1:] == recorded.shape[1:]
        series[name] = counted.astype(recorded.dtype) if was_measured else recorded[rows]
    series["measured"] = {name: values[rows] for name, values in result.measured.items()}
    # what is of all measurements is left out
    return replace(result, **series, permutation=result.permutation[rows], configurations=None, reduced=None)
