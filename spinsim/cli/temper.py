"""``spinsim temper``: parallel tempering in equilibrium."""

from __future__ import annotations

from spinsim.cli import flags
from spinsim.cli.running import carry_out
from spinsim.settings.temper import Temper


@flags.command(Temper)
def temper(config: Temper, quiet: bool, as_json: bool) -> None:
    """Simulate an Ising model or spin glass in equilibrium at many temperatures that exchange configurations."""
    from spinsim.jobs.temper.running import plan_temper

    carry_out(plan_temper(config), quiet, as_json)
