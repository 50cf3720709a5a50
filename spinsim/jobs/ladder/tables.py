"""Runs on a ladder as tables: averages by place of the ladder or by sample, and what a job has besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spinsim.analysis.summary import estimates
from spinsim.analysis.tables import Columns, columns_of_samples, estimate_columns, own_columns
from spinsim.errors import InputError
from spinsim.jobs.ladder.result import LadderResult
from spinsim.settings.setting import either


def ladder_columns(
    result: LadderResult,
    by: str,
    where: Callable[[Any], Columns],
    others: Mapping[str, Callable[[], Columns]],
    same: tuple[str, ...] = (),
) -> Columns:
    """Returns the columns of ``ss.table``.

    Args:
        result: The run.
        by: What a row is of.
        where: Returns the columns that say which place a row is of, that of the ladder first.
        others: What returns the columns of other tables of the job, by name.
        same: Other names of the table by place of the ladder.

    Raises:
        InputError: where there is no such table, and for too few measurements.
    """

    def by_place(one: LadderResult) -> Columns:
        return where(one) | estimate_columns(estimates(one))

    if by in (result.axis.name, *same):
        return by_place(result)
    if by == "sample":
        return columns_of_samples(result, by_place, lambda one: one.best_energy)
    if by in others:
        return others[by]()
    if by in result.measured:
        return own_columns(result, by)
    choices = either((result.axis.name, "sample", *others))
    raise InputError(f"there is no table by {by!r} of this run: choose {choices}")
