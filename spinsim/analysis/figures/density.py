"""Figure of a density of states: entropy, specific heat, and the two phases of a first-order transition."""

from __future__ import annotations

import numpy as np

from spinsim.analysis.density import DensityOfStates
from spinsim.analysis.figures.paper import BLUE, SKY, TEMPERATURE, PaperFigure, drawn_panels
from spinsim.analysis.tables import with_error
from spinsim.observables.table import SYMBOLS


def density_figure(density: DensityOfStates, style: str = "single") -> PaperFigure:
    """Draw ln g(E), the specific heat, and P(E) at a first-order transition if there is one; bands are errors."""
    sites, at, found = density.model.sites, density.peak, density.transition
    heat = density.averages(np.linspace(*density.around_peak, 300))
    words = f"Density of states of {density.model.name}, and its specific heat"
    words += f", which is largest at $T = {with_error(at['peak'], at['peak_error'])}$" if at else ""
    x, rows = density.energy / sites, zip(density.log_density / sites, density.error / sites, strict=True)
    curves = [(x, row, error) for row, error in rows]
    panels = [("energy per site $E/N$", r"$\ln g(E)\,/\,N$", curves)]
    curve = heat["temperature"], heat["specific_heat"], heat["specific_heat_error"]
    panels.append((TEMPERATURE, SYMBOLS["specific_heat"], [curve]))
    if found:
        at_transition = density.probability(found["transition_temperature"])[0]
        shown = np.log(np.maximum(at_transition, at_transition.max() * np.exp(-2 * found["barrier"] - 2)))
        panels.append(("energy per site $E/N$", r"$\ln P(E)$", [(x, shown, 0 * shown)]))
        of = (with_error(found[name], found[f"{name}_error"]) for name in ("transition_temperature", "barrier"))
        words += r"; distribution of energies at $T = {}$, with $\ln(P_\max/P_\min) = {}$".format(*of)
    with drawn_panels(style, len(panels), 2.1) as (figure, axes):
        for ax, (x_label, y_label, lines) in zip(axes, panels, strict=True):
            for x, y, error in lines:
                there, spread = np.isfinite(y), np.nan_to_num(error)
                ax.fill_between(x[there], (y - spread)[there], (y + spread)[there], color=SKY, alpha=0.5, lw=0)
                ax.plot(x[there], y[there], color=BLUE, lw=0.8)
            ax.set_xlabel(x_label)
            ax.set_ylabel(y_label)
    figure.caption = f"{words}. Bands are standard errors."
    return figure
