"""``spinsim anneal``: cool replicas through a temperature schedule."""

from __future__ import annotations

from spinsim.cli import flags
from spinsim.cli.running import carry_out
from spinsim.settings.anneal import Anneal


@flags.command(Anneal)
def anneal(config: Anneal, quiet: bool, as_json: bool) -> None:
    """Cool replicas of an Ising model or spin glass through a temperature schedule."""
    from spinsim.jobs.anneal.running import plan_anneal

    carry_out(plan_anneal(config), quiet, as_json)
