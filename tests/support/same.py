"""Runs on a ladder with what they have added up beside their series, to compare what both say."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from spinsim.analysis.reducing import reduced_of
from spinsim.analysis.runs import Tempered
from spinsim.analysis.summary import Summary

AnyTempered = TypeVar("AnyTempered", bound=Tempered)


def added_up(result: AnyTempered, kept: int = 0) -> AnyTempered:
    """The same run with its reduced measurements; its series are cut to every ``kept``-th row if that is not 0."""
    return replace(result, reduced=reduced_of(result))


def word(found: Summary) -> str:
    """The first words of a verdict."""
    return found.verdict.split(":")[0].split(",")[0]


def ratios(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of numbers that are there in both."""
    known = np.isfinite(one) & np.isfinite(other) & (one != 0)
    return other[known] / one[known]
