"""Rates of parallel tempering, run as a user runs it, beside those of sweeps alone at the same temperatures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from spinsim.benchmark.timing import MEASURE_EVERY, WARM_UP_SWEEPS, sweep_rates
from spinsim.engine import Dynamics, Engine, create_engine, resolve_device
from spinsim.model.disorder import EdwardsAnderson
from spinsim.model.geometry.cubic import cubic
from spinsim.model.ising import Ising
from spinsim.sampling import Times, tempering


@dataclass(frozen=True)
class TemperCase:
    """One line of the table.

    Attributes:
        ladder: Lowest temperature, highest one, how many.
        copies: Of the ladder in each sample.
        reference: Rates of other programs for the like, updates/ns.
    """

    name: str
    model: Callable[[], Ising]
    ladder: tuple[float, float, int]
    copies: int
    reference: str = ""

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        """From the lowest to the highest."""
        return np.linspace(*self.ladder)


@dataclass(frozen=True)
class TemperRate:
    """A measured case.

    Attributes:
        median, slowest, fastest: Attempted spin updates per nanosecond over the repeats, where energies, magnetisations
            and overlaps are measured.
        correlations: The median where link overlaps and modes are measured too.
        raw: The median of sweeps alone.
    """

    case: TemperCase
    samples: int
    packing: str
    median: float
    slowest: float
    fastest: float
    correlations: float
    raw: float


_OTHERS: Final = "30 (GPU of 2014) Fang et al. 2014; just over 1000 (four A100, quantum) Bernaschi et al. 2024"
_PM_J: Final = (0.8, 2.0)
_GAUSSIAN: Final = (0.5, 1.8)
CPU_CASES: Final = (
    TemperCase("3D +-J, L = 6", lambda: EdwardsAnderson(cubic(6), samples=16), (*_PM_J, 16), 2),
    TemperCase("3D +-J, L = 6", lambda: EdwardsAnderson(cubic(6), samples=16), (*_PM_J, 16), 8),
    TemperCase("3D +-J, L = 16", lambda: EdwardsAnderson(cubic(16), samples=4), (*_PM_J, 32), 4, _OTHERS),
    TemperCase(
        "3D Gaussian, L = 4", lambda: EdwardsAnderson(cubic(4), couplings="gaussian", samples=8), (*_GAUSSIAN, 16), 2
    ),
)
CUDA_CASES: Final = (
    TemperCase("3D +-J, L = 16", lambda: EdwardsAnderson(cubic(16), samples=128), (*_PM_J, 32), 4, _OTHERS),
    TemperCase("3D +-J, L = 8", lambda: EdwardsAnderson(cubic(8), samples=1024), (*_PM_J, 32), 4),
    TemperCase("3D +-J, L = 32", lambda: EdwardsAnderson(cubic(32), samples=16), (*_PM_J, 32), 4),
    TemperCase(
        "3D +-J, 16 x 16 x 256", lambda: EdwardsAnderson(cubic(16, 16, 256), samples=32), (*_PM_J, 32), 4, _OTHERS
    ),
    TemperCase("3D +-J, 24 x 24 x 512", lambda: EdwardsAnderson(cubic(24, 24, 512), samples=8), (*_PM_J, 32), 4),
    TemperCase(
        "3D Gaussian, L = 10", lambda: EdwardsAnderson(cubic(10), couplings="gaussian", samples=16), (*_GAUSSIAN, 32), 4
    ),
)


def _tempering_rates(
    case: TemperCase, model: Ising, make: Callable[[], Engine], times: Times, repeats: int, correlations: bool
) -> list[float]:
    """Updates/ns of each of ``repeats`` parts of a run, from the moments at which its measurements come."""
    ladder, engine = case.temperatures, make()
    part = (times.measurements - 1) // repeats
    frames = tempering(engine, ladder, times, case.copies, correlations=correlations)
    moments = [time.perf_counter() for _ in frames][::part]
    updates = model.sites * model.samples * engine.replicas * part * times.measure_every
    return [updates / float(seconds) / 1e9 for seconds in np.diff(moments)]


def _times(sweeps: int, repeats: int, measure_every: int, swap_every: int) -> Times:
    """Those of a run of ``repeats`` parts of about ``sweeps`` sweeps, two measurements or more, and one measurement."""
    part = max(2, sweeps // measure_every)
    warm_up = -(-WARM_UP_SWEEPS // swap_every) * swap_every
    return Times(warm_up, (part * repeats + 1) * measure_every, measure_every, swap_every)


def temper_rates(
    device: str,
    threads: int | None,
    repeats: int,
    rng_rounds: int,
    measure_every: int = MEASURE_EVERY,
    swap_every: int = 1,
) -> Iterator[TemperRate]:
    """Time every case: the median of ``repeats`` runs of about half a second each, after warming up.

    Raises:
        InputError: for numbers of sweeps between measurements and exchanges that do not divide.
    """
    Times(0, measure_every, measure_every, swap_every)
    dynamics = Dynamics(rng_rounds=rng_rounds)
    for case in CUDA_CASES if resolve_device(device) == "cuda" else CPU_CASES:
        model = case.model()
        make = partial(create_engine, model, case.copies * len(case.temperatures), dynamics, device, threads)
        engine = make()
        engine.set_beta(np.tile(1.0 / case.temperatures, case.copies))
        sweeps, raw = sweep_rates(engine, repeats)
        packing = engine.packing
        del engine  # its memory
        times = _times(sweeps, repeats, measure_every, swap_every)
        rates, full = (_tempering_rates(case, model, make, times, repeats, more) for more in (False, True))
        of_rates = statistics.median(rates), min(rates), max(rates)
        yield TemperRate(case, model.samples, packing, *of_rates, statistics.median(full), statistics.median(raw))
