"""What is said of the populations of an annealing run: free energies and families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from spinsim.analysis.population import ENOUGH, FEWEST, MANY
from spinsim.analysis.printed import with_error
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.tables import of_populations


def last_step(result: AnnealResult) -> tuple[dict[str, Any], list[str]]:
    """Returns the main numbers of the last step of a population run, for ``--json`` and as lines."""
    last = replace(
        result,
        temperature=result.temperature[-1:],
        energy=result.energy[-1:],
        **{name: getattr(result, name)[-1:] for name in ("family", "population_free_energy", "parents")},
    )
    found = {name: float(column[0]) for name, column in of_populations(last).items()}
    number, size, entropy = last.families
    whole = result.energy.shape[2] // number.shape[2]
    few = bool(np.exp(entropy.min()) < ENOUGH)
    numbers = {name: value if np.isfinite(value) else None for name, value in found.items()}
    numbers |= {"fewest_families": int(number.min()), "family_entropy_least": float(entropy.min())}
    lines = [
        f"Free energy    {_with_error(found, 'free_energy_per_site')} per site at "
        f"T = {last.temperature[0]:.4g}, "
        + f"entropy {_with_error(found, 'entropy_per_site')}"
        + (", means over samples" if last.energy.shape[1] > 1 else ""),
        f"Families       {_span(number)} of {whole}, mean square size {_span(size)}, entropy {_span(entropy)}",
    ]
    if np.isnan(found["free_energy_per_site_error"]):
        lines.append(f"               {_no_errors(number.shape[2])}")
    if few:
        lines.append(
            f"               an entropy below ln {ENOUGH} is too low to trust averages: "
            "take more replicas, more sweeps or more steps"
        )
    return numbers | {"families_trusted": not few}, lines


def _with_error(found: Mapping[str, float], name: str) -> str:
    """Returns a number of a table with its error, or alone where it has none."""
    value, error = found[name], found[f"{name}_error"]
    return with_error(value, error) if np.isfinite(error) else f"{value:.7g}"


def _no_errors(populations: int) -> str:
    """Returns why errors are left out."""
    groups = "populations" if populations >= MANY else "families"
    return f"there are no errors, as too few {groups} are left to know them (by their shares in Z fewer than {FEWEST})"


def _span(values: np.typing.NDArray[Any]) -> str:
    """Returns numbers as the one, or the least and the largest of them."""
    least, most = f"{values.min():.4g}", f"{values.max():.4g}"
    return least if least == most else f"{least} to {most}"


def short(number: float) -> str:
    """Returns a temperature or field in eight characters or so, as a column begins with it."""
    return f"{number:.6f}" if abs(number) < 10 else f"{number:.6g}"


def by_temperature(result: AnnealResult) -> list[str]:
    """Returns a table of free energies, entropies and families, means over samples."""
    lines = ["       T        F/N      error        S/N      error   families      rho_t"]
    columns = of_populations(result)
    names = ("free_energy_per_site", "free_energy_per_site_error", "entropy_per_site", "entropy_per_site_error")
    for k in sorted({round(k * (len(result.temperature) - 1) / 9) for k in range(10)}):
        values = [result.temperature[k], *(columns[name][k] for name in names)]
        texts = [f"{value:.6f}" if np.isfinite(value) else "-" for value in values]
        texts[0] = short(values[0])
        texts += [f"{columns['families'][k]:.6g}", f"{columns['mean_square_family_size'][k]:.4g}"]
        lines.append(" ".join(f"{text:>10}" for text in texts).removeprefix("  "))
    missing = np.isnan(columns[names[1]])
    if missing.any() and not missing[-1]:  # else the lines of the last step say so
        lines.append(f"-: {_no_errors(result.families.number.shape[2])}")
    return lines
