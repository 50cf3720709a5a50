"""The barrier of a ladder, from the acceptance rates of its exchanges, and the round trips that it allows.

Exchanges are tried with every other pair of neighbours, even and odd pairs in turn (``engine/moves/exchange.py``): the
deterministic even-odd scheme, whose walks are not reversible. A replica goes on in its direction until an exchange is
rejected. If a replica forgets its energy between two exchanges, T temperatures with rejection rates r_i make on average

    1 / (2 + 2 sum over i of r_i / (1 - r_i))

round trips a round in all T replicas of a copy. The sum of r_i tends to the barrier Lambda as neighbours come close;
with 2 Lambda + 1 temperatures, whose r_i are 1/2, replicas make most round trips for the work.

Source: S. Syed, A. Bouchard-Cote, G. Deligiannidis, A. Doucet, J. R. Stat. Soc. B 84, 321 (2022).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinsim.analysis.runs import Array, Tempered
from spinsim.errors import InputError


@dataclass(frozen=True)
class Barrier:
    """Barrier of a ladder; its pairs are neighbours, beginning at the coldest end.

    Attributes:
        rejection: Share of the exchanges of each pair that were rejected, the mean over samples, (places - 1,).
        local: Local barrier lambda, the rejection rate over the distance of each pair in beta = 1 / T or, of quantum
            runs, in the quantity along the ladder, (places - 1,).
        predicted: Round trips a round in all replicas of a copy, from the rejection rates.
        observed: Round trips a round, as they were counted.
    """

    rejection: Array
    local: Array
    predicted: float
    observed: float

    @property
    def total(self) -> float:
        """Lambda, the sum of the rejection rates."""
        return float(self.rejection.sum())

    @property
    def best_number(self) -> float:
        """Number 2 Lambda + 1 of temperatures with most round trips for the work."""
        return 2 * self.total + 1

    @property
    def widest(self) -> int:
        """Number of the pair with the largest rejection rate, between which one more temperature gains most."""
        return int(self.rejection.argmax())


def barrier(result: Tempered) -> Barrier:
    """Return the barrier of a run's ladder; see ``LadderResult.barrier``."""
    if not result.attempts.any():
        raise InputError(
            f"the run of {result.model.name} has counted no exchange: it takes two {result.axis.name} values or more, "
            "and a first checkpoint"
        )
    axis, copies = result.axis, result.permutation.shape[2]
    along = 1 / axis.values if axis.name == "temperature" else axis.values
    attempts = np.maximum(result.attempts, 1)
    rejection = np.where(result.attempts > 0, 1 - result.accepts / attempts, np.nan)  # (samples, pairs)
    with np.errstate(divide="ignore"):
        predicted = 1 / (2 + 2 * (rejection / (1 - rejection)).sum(axis=1))
    rounds = 2 * result.attempts.mean(axis=1) / copies  # every pair is tried in half of them
    observed = result.round_trips.sum(axis=1) / (copies * rounds)
    mean = rejection.mean(axis=0)
    return Barrier(mean, mean / np.abs(np.diff(along)), float(predicted.mean()), float(observed.mean()))
