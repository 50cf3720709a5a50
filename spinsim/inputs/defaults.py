"""Where schedules begin and end that are not told, in units of the root mean square local field."""

from __future__ import annotations

from typing import Final

T_START: Final = 1.5
T_STOP: Final = 0.05
