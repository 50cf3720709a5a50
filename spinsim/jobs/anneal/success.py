"""How often the anneals of a search met a target, and the time to solution that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spinsim.analysis.time_to_solution import (
    Estimate,
    in_words,
    seconds_in_words,
    side_by_side,
    success_probability,
    time_to_solution,
)
from spinsim.inputs.texts import count
from spinsim.jobs.anneal.search import Anneals
from spinsim.model.ising import Ising


@dataclass(frozen=True)
class Success:
    """What anneals of one length say of one target.

    Attributes:
        sweeps: Of an anneal.
        replicas: That it has side by side.
        anneals: How many there were.
        of_replica: Probability that a replica meets the target in an anneal; None where anneals were not done to their
            end when one did.
        of_anneal: That any of its replicas does.
        seconds: Mean time of a whole anneal, NaN where there was none.
        tts: Time in which anneals, one after the other, meet the target with 99 %, None where ``seconds`` is NaN.
    """

    sweeps: int
    replicas: int
    anneals: int
    of_replica: Estimate | None
    of_anneal: Estimate
    seconds: float
    tts: Estimate | None

    @property
    def numbers(self) -> dict[str, Any]:
        """The same for JSON, which knows no infinity: None stands for it."""
        named = {"p_of_replica": self.of_replica, "p_of_anneal": self.of_anneal, "time_to_solution": self.tts}
        estimates = {
            name: None if one is None else [number if np.isfinite(number) else None for number in one]
            for name, one in named.items()
        }
        seconds = self.seconds if np.isfinite(self.seconds) else None
        counts = {"anneals": self.anneals, "sweeps": self.sweeps, "replicas": self.replicas}
        return counts | {"seconds_of_anneal": seconds} | estimates

    @property
    def line(self) -> str:
        """The same in a line."""
        of_one = (
            "" if self.of_replica is None else f"a replica meets it with p = {in_words(self.of_replica, '{:.3g}')}, "
        )
        time = "unknown" if self.tts is None else in_words(self.tts, seconds_in_words)
        return (
            f"of {count(self.anneals, 'anneal')} of {self.sweeps} sweeps: {of_one}any of {self.replicas} with "
            f"p = {in_words(self.of_anneal, '{:.3g}')}; time to solution at 99 %: {time}"
        )


def success_of(
    model: Ising, anneals: Anneals | None, target: float | None = None, independent: bool = True
) -> Success | None:
    """What the longest anneals of a search say of a target, its own by default; None without one, or of many samples.

    A search that ended with its target has its last anneal count as a success, as its replicas would have kept what
    they had met; how many more of them would have met it is then not known.

    Args:
        model: What was annealed.
        anneals: Of the search, None where there was none.
        target: In the problem's own terms.
        independent: Whether replicas are; those of populations are not, so that their anneals count as a whole.
    """
    if anneals is None or (target is None and anneals.target is None) or model.samples > 1 or not len(anneals.sweeps):
        return None
    hits, whole = anneals.hits(model, target)[:, 0], anneals.whole
    used = (anneals.planned == np.max(anneals.planned)) & (whole | (hits > 0))
    if not used.any():
        return None
    trials, replicas = int(used.sum()), anneals.energy.shape[2]
    of_replica = None
    if independent and whole[used].all():
        of_replica = success_probability(int(hits[used].sum()), trials * replicas)
        of_anneal = side_by_side(of_replica, replicas)
    else:
        of_anneal = success_probability(int((hits[used] > 0).sum()), trials)
    times = anneals.seconds[used & whole]
    mean = float(np.mean(times)) if times.size else np.nan
    tts = time_to_solution(times, of_anneal) if times.size else None
    return Success(int(np.max(anneals.planned)), replicas, trials, of_replica, of_anneal, mean, tts)
