"""The configurations of all jobs."""

from __future__ import annotations

from typing import Final

from spinsim.settings.anneal import Anneal
from spinsim.settings.config import Config
from spinsim.settings.temper import Temper
from spinsim.settings.transfer import Transfer

JOBS: Final[tuple[type[Config], ...]] = (Anneal, Temper, Transfer)
