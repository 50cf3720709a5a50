"""A tempering run's series, counted again from the configurations that it has saved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spinsim.engine import Dynamics, create_engine
from spinsim.engine.given_start import set_spins
from spinsim.jobs.temper.result import TemperResult
from spinsim.run.recounting import saved_of


def recounted(result: TemperResult, device: str, threads: int | None) -> TemperResult:
    """Returns the run with the saved measurements alone, counted anew by an engine that is given the spins.

    Replica c T + k of the engine is copy c at temperature k of T, as no exchange has taken place there.
    """
    found, rows = saved_of(result)
    model, (copies, temperatures), full = result.model, found.shape[2:], result.has_correlations
    engine = create_engine(model, copies * temperatures, Dynamics(), device, threads)
    engine.set_ladder(1 / result.temperature, copies)
    engine.prepare_measurements(1, full)
    unexchanged, measured = engine.begin_exchange()(), []
    for number in range(len(rows)):
        spins = found.row(number).reshape(model.samples, copies * temperatures, model.sites)
        set_spins(engine, spins, unexchanged)
        m = engine.begin_measurement(full)()
        measured.append(m._asdict() | m.correlations._asdict())
    names = ["energy", "magnetization", "overlap", "link_overlap", "overlap_mode", "magnetization_mode"]
    names += ["staggered_magnetization"] * result.has_staggered
    dtypes = {name: getattr(result, name).dtype for name in names}
    series: dict[str, Any] = {name: np.stack([m[name] for m in measured]).astype(dtypes[name]) for name in names}
    for name in ("sweep", "permutation", "staggered_magnetization"):
        series.setdefault(name, getattr(result, name)[rows])
    return replace(result, **series, configurations=None)
