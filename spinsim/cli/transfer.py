"""``spinsim transfer``: leading eigenvalues of transfer matrices."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinsim.cli import flags
from spinsim.cli.saying import say
from spinsim.cli.showing import precision
from spinsim.settings.transfer import Transfer
from spinsim.texts import quoted

if TYPE_CHECKING:
    from spinsim.result import TransferResult
    from spinsim.run import TransferPlan

MOST_LINES = 20
MOST_NAMED = 3


@flags.command(Transfer)
def transfer(config: Transfer, quiet: bool, as_json: bool) -> None:
    """Find the leading eigenvalues of transfer matrices: correlation lengths, free energies, gaps.

    All layers of a sample are equal, with ferromagnetic bonds --k-time between them: random couplings make a McCoy-Wu
    model, random within a layer alone.
    """
    from spinsim.run import plan_transfer

    carry_out(plan_transfer(config), quiet, as_json)


def carry_out(plan: TransferPlan, quiet: bool, as_json: bool) -> None:
    """Run a plan and say how it went."""
    from spinsim.progress import counted
    from spinsim.result import load_transfer
    from spinsim.run import transfer_to_file

    silent, work = quiet or as_json, plan.work()
    if not silent:
        say(describe(plan))
    with counted(work.rows, silent) as advance:
        try:
            ran = transfer_to_file(plan, advance, partial(say, err=True))
        except KeyboardInterrupt:
            if plan.path.exists():
                say(f"Interrupted; spinsim resume {quoted(plan.path)} completes it.", err=True)
            raise
    result = load_transfer(plan.path)
    if as_json:
        say(json.dumps({"file": str(plan.path)} | summary(result)))
    elif not quiet:
        if not ran:
            say("This very run is finished already; nothing was done again.")
        for line in report(result) + lacking(result, plan.path):
            say(line)
        say(f"Results  {plan.path}")
        say(f"Next     spinsim show {quoted(plan.path)}")


def describe(plan: TransferPlan) -> str:
    """What is about to run, in one line."""
    work, model = plan.work(), plan.model
    bits = model.sites - (work.sectors != ("all",))
    held = f"{work.room.basis} stored vectors" if work.room.basis else "no stored vectors"
    where = "CPU" if plan.device == "cpu" else "GPU"
    return (
        f"Transfer matrix of {model.name}: {model.sites} spins a layer, 2^{bits} amplitudes, {held}, "
        f"{model.samples} samples x {len(work.points.k)} couplings, {' and '.join(work.sectors)}, on the {where}"
    )


def report(result: TransferResult) -> list[str]:
    """The main numbers, a line each sector of each sample and coupling."""
    import numpy as np

    levels = [f"ln lambda_{i}" for i in range(min(result.levels.shape[-1], 3))]
    head = "  sample          T          k  sector" + "".join(f"{name:>17}" for name in levels)
    lines = [head + "   residual         xi"]
    for sample, point in np.argwhere(result.there):
        k = result.k[point]
        for i, sector in enumerate(result.sectors):
            at = sample, point, i
            numbers = "".join(f"{value:17.10f}" for value in result.levels[at][: len(levels)])
            reached = np.fmax.reduce(result.residual[at])
            length = _longest(result.correlation_length[at], result.in_noise[at])
            lines.append(f"{sample:8d} {1 / k:10.6f} {k:10.6f}  {sector:6}{numbers} {reached:10.1e} {length:>10}")
    if len(lines) > MOST_LINES + 1:
        lines = [*lines[: MOST_LINES + 1], f"... and {len(lines) - MOST_LINES - 1} more lines, all in the file"]
    if result.in_noise.any():
        lines.append(f"? {result.in_noise.sum()} lengths xi that rounding may have changed by more than 1 %")
    if result.levels.shape[:2] == (1, 1):
        energies = {"Free energy per site": result.free_energy_per_site, "Energy per site": result.energy_per_site}
        known = {name: float(table[0, 0]) for name, table in energies.items() if not math.isnan(table[0, 0])}
        lines += [f"{name:20}  {value:.10f}" for name, value in known.items()]
    return lines


def lacking(result: TransferResult, path: Path) -> list[str]:
    """Which rows lack levels, and what to do about that, in a line; none where all are complete."""
    import numpy as np

    rows = np.argwhere(result.incomplete)
    if not len(rows):
        return []
    named = ", ".join(f"sample {sample} at k = {result.k[point]:.6g}" for sample, point in rows[:MOST_NAMED])
    named += ", ..." if len(rows) > MOST_NAMED else ""
    return [
        f"INCOMPLETE: {len(rows)} of {result.planned_rows} rows lack levels that did not converge, which are nan "
        f"({named}); spinsim resume {quoted(path)} --most-steps N tries them again, N steps at most, and "
        "says what else helps"
    ]


def _longest(lengths: Any, in_noise: Any) -> str:
    """The longest correlation length of a sector, with a ? where rounding matters, a dash where there is none."""
    known = [
        (float(length), bool(hidden)) for length, hidden in zip(lengths, in_noise, strict=True) if length == length
    ]
    if not known:
        return "-"
    length, hidden = max(known)
    return f"{length:.6g}{'?' * hidden}"


def summary(result: TransferResult) -> dict[str, Any]:
    """The same numbers for ``--json``, with null for what was not computed and for infinite lengths."""
    import numpy as np

    names = ("log_eigenvalue", "residual", "correlation_length")
    tables = {name: _plain(getattr(result, {"log_eigenvalue": "levels"}.get(name, name))) for name in names}
    single = ("gap", "free_energy_per_site", "energy_per_site")
    return {
        "job": "transfer",
        "config_sha256": result.attributes["config_sha256"],
        "model": result.model.name,
        "sites": result.model.sites,
        "axes": ["sample", "point", "sector", "level"],
        "sectors": list(result.sectors),
        **precision(result.model),
        "rows": int(result.there.sum()),
        "planned_rows": result.planned_rows,
        "incomplete": np.argwhere(result.incomplete).tolist(),
        "in_noise": np.argwhere(result.in_noise).tolist(),
        "k": _plain(result.k),
        "k_time": result.k_time.tolist(),
        **tables,
        **{name: _plain(getattr(result, name)) for name in single},
    }


def _plain(values: Any) -> Any:
    """Nested lists, numbers that are none as null: JSON has no NaN and no infinity."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, list):
        return [_plain(value) for value in values]
    return values if math.isfinite(values) else None
