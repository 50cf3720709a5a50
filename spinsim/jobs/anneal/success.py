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
        of_replica: Probability that a replica meets the target in an anneal; None of populations, whose replicas are
            not independent, and of a search that stopped at its first success, which tells nothing of it.
        of_anneal: That any of its replicas does; None of such a search.
        seconds: Mean time of a whole anneal; of such a search, of those that missed the target.
        tts: Time in which anneals, one after the other, meet the target with 99 %; None of such a search.
    """

    sweeps: int
    replicas: int
    anneals: int
    of_replica: Estimate | None
    of_anneal: Estimate | None
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
        counts = {"anneals": self.anneals, "sweeps": self.sweeps, "replicas": self.replicas}
        return counts | {"seconds_of_anneal": self.seconds} | estimates

    @property
    def line(self) -> str:
        """The same in a line."""
        anneals = f"of {count(self.anneals, 'anneal')} of {self.sweeps} sweeps"
        if self.of_anneal is None or self.tts is None:
            return f"{anneals} the last met the target, and the search stopped at this first success: p is not known"
        of_one = (
            "" if self.of_replica is None else f"a replica meets it with p = {in_words(self.of_replica, '{:.3g}')}, "
        )
        return (
            f"{anneals}: {of_one}any of {self.replicas} with p = {in_words(self.of_anneal, '{:.3g}')}; "
            f"time to solution at 99 %: {in_words(self.tts, seconds_in_words)}"
        )


def success_of(
    model: Ising, anneals: Anneals | None, target: float | None = None, independent: bool = True
) -> Success | None:
    """What the longest anneals of a search say of a target, its own by default; None without one, or of many samples.

    A search that ended with its target stopped at its first success, so that the share of its anneals that met it is no
    probability, nor is that of any other target: it is told how many there were, if there was a whole one of that
    length before.

    Args:
        model: What was annealed.
        anneals: Of the search, None where there was none.
        target: In the problem's own terms.
        independent: Whether replicas are; those of populations are not, so that their anneals count as a whole.
    """
    if anneals is None or (target is None and anneals.target is None) or model.samples > 1 or not len(anneals.sweeps):
        return None
    hits, longest = anneals.hits(model, target)[:, 0], anneals.planned == np.max(anneals.planned)
    sweeps, replicas = int(np.max(anneals.planned)), anneals.energy.shape[2]
    used = longest & anneals.whole
    if anneals.is_met:
        failed = anneals.seconds[used & (anneals.hits(model)[:, 0] == 0)]
        trials = int(longest.sum()) + anneals.done - len(anneals.sweeps)
        return Success(sweeps, replicas, trials, None, None, float(failed.mean()), None) if failed.size else None
    if not used.any():
        return None
    trials, of_replica = int(used.sum()), None
    if independent:
        of_replica = success_probability(int(hits[used].sum()), trials * replicas)
        of_anneal = side_by_side(of_replica, replicas)
    else:
        of_anneal = success_probability(int((hits[used] > 0).sum()), trials)
    times = anneals.seconds[used]
    tts = time_to_solution(times, of_anneal)
    return Success(sweeps, replicas, trials, of_replica, of_anneal, float(times.mean()), tts)
