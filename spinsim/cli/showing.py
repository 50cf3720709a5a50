"""A run on a terminal: what it is, its progress, how to go on with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from spinsim.cli.averages import wrapped
from spinsim.cli.saying import say
from spinsim.texts import quoted

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from spinsim.model.ising import Ising
    from spinsim.progress import UpdateProgress


def run_shown(plan: Any, to_file: Callable[..., bool], description: str, silent: bool) -> tuple[bool, UpdateProgress]:
    """Run a plan of any job into its file; whether it ran, and its rate."""
    from spinsim.progress import UpdateProgress
    from spinsim.run import Watch

    if not silent:
        for line in wrapped(description):
            say(line)
    with UpdateProgress(silent=silent) as progress:
        watch = Watch(progress.begin, progress.advance, partial(say, err=True))
        try:
            return to_file(plan, watch), progress
        except KeyboardInterrupt:
            progress.stop()
            if plan.path.exists():
                say(f"Interrupted; spinsim resume {quoted(plan.path)} completes it from its last checkpoint.", err=True)
            else:
                say("Interrupted before the run had begun: the same command begins anew.", err=True)
            raise


def closing_lines(plan: Any, ran: bool, progress: UpdateProgress, report: list[str]) -> list[str]:
    """The report of a run between what was done and where it is."""
    return [
        *([] if ran else ["This very run is finished already; nothing was done again."]),
        *report,
        *([f"{progress.rate:.3g} updates/ns over {progress.seconds:.1f} s"] if ran else []),
        f"Results  {plan.path}",
        f"Next     spinsim show {quoted(plan.path)}",
    ]


def precision(model: Ising) -> dict[str, Any]:
    """How exactly a model is held, for ``--json``."""
    return {"quantum": model.quantum, "rounded": bool(model.rounded), "rounding_error": model.rounding_error}


def lowest_lines(model: Ising, best_energy: npt.NDArray[np.float64]) -> list[str]:
    """What optimisers look for, a line each: the lowest energy met, the cut that it means; of samples their mean."""
    from spinsim.analysis.samples import lowest as of_samples

    if model.samples > 1:
        found, replicas = of_samples(model, best_energy), best_energy.shape[1]
        return [
            f"Lowest energy  {found.mean:.6f} +- {found.error:.2g} per site, mean over {model.samples} samples",
            f"               met by {found.hits.mean():.3g} of {replicas} replicas a sample, "
            f"from {found.hits.min()} to {found.hits.max()}",
        ]
    lowest = float(best_energy.min())
    hits = int((best_energy == lowest).sum())
    lines = [
        f"Lowest energy  {lowest:.10g}  ({lowest / model.sites:.6f} per site), "
        f"met by {hits} of {best_energy.size} replicas"
    ]
    if model.maxcut_weight is not None:
        lines.append(f"Best cut       {float(model.cut(lowest)):.10g}")
    if model.offset:
        lines.append(f"With offset    {lowest + model.offset:.10g}")
    return lines


def save_and_say(figures: Mapping[Path, Figure], overwrite: bool) -> None:
    """Write figures with their captions, and print the paths of the figures.

    Raises:
        InputError: where one of them may not be written; then none is.
    """
    from spinsim.analysis.figures import save_figures

    save_figures(figures, overwrite)
    for path in figures:
        say(path)
    say("Captions are beside them, in files that end in .txt." if len(figures) > 1 else
               "Its caption is beside it, in a file that ends in .txt.", err=True)  # fmt: skip
