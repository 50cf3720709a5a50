"""Sentences, rows and tables in the reports of both jobs with a ladder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.summary import Summary, estimates
from spinsim.analysis.tables import (
    Columns,
    Row,
    columns_of_samples,
    estimate_columns,
    main_columns,
    own_columns,
    printed_table,
    unprinted,
)
from spinsim.analysis.walks import ROUND_TRIPS, Equilibrium
from spinsim.errors import InputError
from spinsim.inputs.texts import count, either, enumerated, wrapped
from spinsim.jobs.ladder.result import Floats, LadderResult
from spinsim.jobs.ladder.run import LadderPlan, moves_in_words
from spinsim.model.ising import Ising

MOST_COLUMNS: Final = 4  # averages that fit with the exchanges in 80 characters; a wider table is split
_MOST_NAMED: Final = 8  # slow samples that are named one by one


def ladder_sentence(plan: LadderPlan[Any], size: str, axis: tuple[str, str], values: Floats, length: str) -> str:
    """Describe a plan in a sentence; for a ladder that is still to be placed, ``values`` are its two ends."""
    wanted, copies = plan.of_job.to_place, plan.config.run.number_of_replicas
    number = f"{len(values)}" if wanted is None else f"{wanted.count or ''} placed".strip()
    low, high = values.min(), values.max()
    ladder = f"{axis[0]} = {low:.4g}" if number == "1" else f"{number} {axis[1]} from {low:.4g} to {high:.4g}"
    where = "CPU" if plan.device == "cpu" else "GPU"
    moves = moves_in_words(plan.of_job.moves, plan.of_job.houdayer)
    return f"{size}{count(copies, 'copy')} x {ladder}, {length}{moves}, on the {where}"


def table_by_place(
    model: Ising,
    averages: Summary,
    rates: npt.NDArray[np.float64] | None,
    next_place: str,
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Row | str]:
    """Return the main averages of a run on a ladder, one line for each place, with acceptance rates of exchanges."""
    names = main_columns(model, averages.estimates)[:MOST_COLUMNS]
    if rates is None or not len(rates):
        return [*printed_table(averages, names, others)]
    swaps = {"swaps": [*(f"{rate:.3f}" for rate in rates), ""]}
    note = f"share of the exchanges tried with {next_place} that were accepted."
    return [*printed_table(averages, names, {**others, **swaps}), *wrapped(note, "swaps: ")]


def round_trip_row(trips: npt.NDArray[np.int64]) -> Row:
    without = int((trips == 0).sum())
    each = f"{without} of {count(trips.size, 'replica')} made none" if without else "every replica made one or more"
    each = each if without < trips.size else "no replica made one"
    return Row("Round trips", int(trips.sum()), note=f"in all, {trips.mean():.3g} a replica; {each}", key="round_trips")


def walk_rows(result: LadderResult) -> list[Row]:
    """Return rows with the barrier of the ladder, its round trips, and the autocorrelation times of replicas' walks."""
    if not result.attempts.any():
        return []
    ladder, walks, axis = result.barrier(), result.equilibrium(), result.axis
    low, high = axis.values[ladder.widest : ladder.widest + 2]
    more = ", where one more pays most" if len(axis.values) < ladder.best_number else ""
    barrier = (
        f"{ladder.total:.4g}, the sum of rejection rates, for which {ladder.best_number:.3g} values of {axis.symbol} "
        f"are best; there are {len(axis.values)}. The largest rate, {ladder.rejection.max():.3f}, is between {low:.4g} "
        f"and {high:.4g}{more}."
    )
    trips = f"{ladder.observed:.3g} round trips in each copy per round of exchanges; {ladder.predicted:.3g} predicted"
    least, most = walks.tau_exp.min(), walks.tau_exp.max()
    times = f"{least:.3g}" if len(walks.tau_exp) == 1 else f"{least:.3g} to {most:.3g}"
    longest = f"along the ladder with tau_exp = {times} sweeps; {_slow_in_words(walks)}"
    numbers = {
        "barrier": ladder.total,
        "rejection_rate": ladder.rejection,
        "local_barrier": ladder.local,
        "round_trip_rate": ladder.observed,
        "predicted_round_trip_rate": ladder.predicted,
        "tau_exp": walks.tau_exp,
        "tau_exp_error": walks.tau_exp_error,
        "slow_samples": walks.slow,
    }
    return [
        Row("Barrier", note=barrier), Row("Trip rate", note=trips), Row("Walks", note=longest), *unprinted(numbers)
    ]  # fmt: skip


def _slow_in_words(walks: Equilibrium) -> str:
    needed = f"{walks.needed} such times and {ROUND_TRIPS} round trips a replica"
    if not len(walks.slow):
        return f"every sample has {needed}"
    more = len(walks.slow) - _MOST_NAMED
    named = [*map(str, walks.slow[:_MOST_NAMED]), *([f"{more} more"] if more > 0 else [])]
    return f"slow samples, without {needed}: {enumerated(named, 'and')}"


def ladder_columns(
    result: LadderResult,
    by: str,
    where: Callable[[Any], Columns],
    others: Mapping[str, Callable[[], Columns]],
    same: tuple[str, ...] = (),
) -> Columns:
    """Return the columns of ``ss.table``.

    ``where`` returns the columns that identify a row's place. ``others`` has the other tables of the job by name, and
    ``same`` has other names of the table by place.
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
