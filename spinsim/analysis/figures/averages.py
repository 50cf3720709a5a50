"""Averages of tempering runs against temperature."""

from __future__ import annotations

import matplotlib.style
from matplotlib.figure import Figure

from spinsim.analysis import onsager
from spinsim.analysis.figures.panels import (
    ENERGY,
    TEMPERATURE,
    draw_estimate,
    draw_exact,
    is_onsager,
    run_text,
    show_zero,
)
from spinsim.analysis.figures.paper import BLUE, PAPER, WIDTH, draw_legend
from spinsim.analysis.sizes import is_ferromagnet
from spinsim.analysis.summary import Summary
from spinsim.result import TemperResult


def averages_figure(result: TemperResult, summary: Summary) -> Figure:
    """Energy and specific heat per site and an order parameter against temperature, with errors that can be trusted.

    The third panel is mean |m| for ferromagnets and where there are no overlaps, else the spin-glass susceptibility.
    Points whose error cannot be trusted are open and have no bar. A square ferromagnet in zero field comes with the
    exact curves of the infinite lattice.
    """
    x, estimates = summary.temperature, summary.estimates
    magnetic = is_ferromagnet(result.model) or "spin_glass_susceptibility" not in estimates
    third = "abs_magnetization" if magnetic else "spin_glass_susceptibility"
    with matplotlib.style.context(PAPER):
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        top, middle, bottom = figure.subplots(3, sharex=True)
        draw_estimate(top, x, estimates["energy_per_site"], BLUE, run_text(result))
        draw_estimate(middle, x, estimates["specific_heat"], BLUE, run_text(result))
        draw_estimate(bottom, x, estimates[third], BLUE, run_text(result))
        top.set_ylabel(ENERGY)
        middle.set_ylabel(r"specific heat $C/(Nk_\mathrm{B})$")
        bottom.set_ylabel(
            r"magnetisation $\langle|m|\rangle$" if magnetic else r"$\chi_\mathrm{SG} = N[\langle q^2\rangle]$"
        )
        bottom.set_xlabel(TEMPERATURE)
        if is_onsager(result.model):
            unit = result.model.coupling_unit
            draw_exact(top, x, onsager.energy, unit)
            draw_exact(middle, x, onsager.specific_heat, unit)
            draw_exact(bottom, x, onsager.magnetization, unit)
        show_zero(middle)
        show_zero(bottom)
        figure.align_ylabels()
        draw_legend(figure, top, middle, bottom)
    return figure
