"""Walks of replicas along the ladder: how long a sample needs until replicas have forgotten where they were."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.analysis.autocorrelation import windowed_sum
from spinsim.analysis.equilibration import FEW_SAMPLES
from spinsim.analysis.runs import Integers, Tempered

Array = npt.NDArray[np.float64]

SPAN: Final = 10
"""Autocorrelation times that the walks of each sample must span."""
SPAN_OF_FEW: Final = 20
"""Likewise of fewer than ``FEW_SAMPLES``, over which drifts are tested weakly."""
ROUND_TRIPS: Final = 2
"""Round trips that the replicas of each sample must have made on average."""
_MEMORY: Final = 4
"""Autocorrelation times of a place in which a replica forgets a state that it can only leave at the hottest place.

Of a diffusion between two ends that reflect it the slowest mode is half a wave; with an end that absorbs it is a
quarter of one, which takes four times as long.
"""


class Walks(NamedTuple):
    """Walks along the ladder in each sample.

    Attributes:
        steps: Measurements.
        tau: Integrated autocorrelation time of a replica's place, in measurements, (samples,).
        round_trips: Mean over the replicas, likewise; None where they could not be counted yet.
    """

    steps: int
    tau: Array
    round_trips: Array | None

    @property
    def span(self) -> Array:
        """Autocorrelation times of its walk that each sample's run is long, (samples,)."""
        return self.steps / self.tau

    @property
    def least(self) -> int:
        """Autocorrelation times that are needed."""
        return SPAN_OF_FEW if len(self.tau) < FEW_SAMPLES else SPAN

    @property
    def window(self) -> Array:
        """Measurements in which each sample forgets, (samples,)."""
        return _MEMORY * self.tau

    @property
    def short(self) -> npt.NDArray[np.bool_]:
        """Samples whose replicas have walked too little to show that they are in equilibrium, (samples,)."""
        few = False if self.round_trips is None else self.round_trips < ROUND_TRIPS
        return np.asarray((self.span < self.least) | few)

    @property
    def words(self) -> str:
        """How little replicas have walked, as a clause."""
        where = f" in {int(self.short.sum())} of {len(self.span)} samples" if len(self.span) > 1 else ""
        found = f"{self.span.min():.2g} autocorrelation times of that walk ({self.least} are needed)"
        if self.round_trips is not None:
            found += f" and {self.round_trips.min():.2g} round trips a replica ({ROUND_TRIPS} are needed)"
        return f"replicas{where} walked too little along the ladder, {found}; run longer"


def walks(result: Tempered) -> Walks | None:
    """Find how long the walks of replicas are; None where there is one temperature."""
    samples, places = result.permutation.shape[1], result.permutation.shape[-1]
    if places < 2:
        return None
    trips = result.round_trips.mean(axis=1) if result.attempts.any() else None
    return Walks(len(result.permutation), np.array([_tau(result.permutation[:, k]) for k in range(samples)]), trips)


def _tau(permutation: Integers) -> float:
    """Autocorrelation time of the places of a sample's replicas (steps, copies, places), at least 1/2.

    All replicas spend equal times everywhere, so that mean and variance of a place are known before: a run that is
    shorter than the walk cannot hide that, as it would if it took off the mean that it has measured.
    """
    steps, copies, places = permutation.shape
    place = np.argsort(permutation, axis=-1).reshape(steps, copies * places)
    centred = (place - (places - 1) / 2) / np.sqrt((places**2 - 1) / 12)
    return max(windowed_sum(centred)[0], 0.5)
