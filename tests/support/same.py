"""Runs on a ladder with sums that are made of series."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TypeVar

import numpy as np

import spinsim as ss
from spinsim.analysis.run_sums import RunSums
from spinsim.analysis.runs import Tempered
from spinsim.analysis.statistics import sums_of
from spinsim.analysis.summary import Summary
from spinsim.engine.measuring.cpu_reduction import HostReduction
from spinsim.engine.measuring.reduction import Reduced, Source, Term

AnyTempered = TypeVar("AnyTempered", bound=Tempered)


def added_up(result: AnyTempered) -> AnyTempered:
    """The same run with the sums of its rows."""
    return replace(result, reduced=sums_of(result, by_energy=True))


def word(found: Summary) -> str:
    """The first words of a verdict."""
    return found.verdict.split(":")[0].split(",")[0]


def energies_alone(series: np.ndarray, pairs: bool = False) -> RunSums:
    """What a run adds up of one number, ``series`` (steps, samples, copies, places), or pairs of copies (of three)."""
    _, samples, copies, places = series.shape
    model = ss.Ising(ss.chain(4), np.resize([1.0, -1.0], (samples, 4))) if samples > 1 else ss.Ising(ss.chain(4))
    source = Source("link_overlap" if pairs else "energy")
    term = Term("energy", (source,), np.ones((1, places)), np.zeros(places), 1, pairs, True, not pairs)
    reduction = HostReduction(Reduced(model, copies, places, (term,)))
    place = np.tile(np.arange(places), (samples, copies)).astype(np.int32)
    for row in series:
        found = SimpleNamespace(energy=row, exchange=SimpleNamespace(place=place), correlations=_Nothing(row))
        reduction.add_numbers(found)  # type: ignore[arg-type]
    return RunSums(reduction.reduced, reduction.state(), 1)


class _Nothing:
    """Correlations of a run that measured none but link overlaps; overlaps are all 0."""

    def __init__(self, row: np.ndarray) -> None:
        samples, copies, places = row.shape
        self.link_overlap = row
        self.overlap = np.zeros((samples, copies * (copies - 1) // 2, places), np.int64)
