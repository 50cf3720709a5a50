"""``spinsim transfer``: leading eigenvalues of transfer matrices."""

from __future__ import annotations

from spinsim.cli import flags
from spinsim.cli.running import carry_out
from spinsim.settings.transfer import Transfer


@flags.command(Transfer)
def transfer(config: Transfer, quiet: bool, as_json: bool) -> None:
    """Find the leading eigenvalues of transfer matrices: correlation lengths, free energies, gaps.

    All layers of a sample are equal, with ferromagnetic bonds --k-time between them: random couplings make a McCoy-Wu
    model, random within a layer alone.
    """
    from spinsim.jobs.transfer.running import plan_transfer

    carry_out(plan_transfer(config), quiet, as_json)
