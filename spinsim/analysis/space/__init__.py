"""Analyses of saved configurations and pairs of runs: correlations in space, overlaps of copies, chaos, interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple


class Analysis(NamedTuple):
    """An analysis by the name that commands give it."""

    module: str
    function: str  # takes runs, returns ``Estimates``
    options: Mapping[str, Any] = {}  # its further arguments
    most_runs: int = 1  # runs that it takes together

    def __call__(self, *runs: Any) -> Any:
        found = getattr(import_module(f"{__name__}.{self.module}"), self.function)
        return found(*runs, **self.options)


ANALYSES: Final = {
    "space": Analysis("correlations", "space"),
    "joint": Analysis("joint", "joint"),
    "quantiles": Analysis("joint", "joint", {"x": "q_median", "y": "q", "copies": 4}),
    "triangles": Analysis("joint", "joint", {"x": "q_median", "y": "q_min", "copies": 3}),
    "boxes": Analysis("joint", "joint", {"y": "q_box"}),
    "chaos": Analysis("changes", "chaos", most_runs=2),
    "interface": Analysis("changes", "interface", most_runs=2),
}
