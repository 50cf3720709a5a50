"""Analyses of saved configurations and pairs of runs: correlations in space, overlaps of copies, chaos, interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

from spinsim.errors import InputError


class Analysis(NamedTuple):
    """An analysis by the name that commands give it."""

    module: str
    function: str  # takes runs, returns ``Estimates``
    options: Mapping[str, Any] = {}  # its further arguments
    fewest_runs: int = 1  # runs that it takes together
    most_runs: int = 1

    def __call__(self, *runs: Any) -> Any:
        if not self.fewest_runs <= len(runs) <= self.most_runs:
            numbers = " or ".join(map(str, range(self.fewest_runs, self.most_runs + 1)))
            raise InputError(f"this analysis takes {numbers} runs and not {len(runs)}: give as many files")
        return getattr(import_module(f"{__name__}.{self.module}"), self.function)(*runs, **self.options)


ANALYSES: Final = {
    "space": Analysis("correlations", "space"),
    "joint": Analysis("joint", "joint"),
    "quantiles": Analysis("joint", "joint", {"x": "q_median", "y": "q", "copies": 4}),
    "triangles": Analysis("joint", "joint", {"x": "q_median", "y": "q_min", "copies": 3}),
    "boxes": Analysis("joint", "joint", {"y": "q_box"}),
    "chaos": Analysis("changes", "chaos", {}, 1, 2),
    "interface": Analysis("changes", "interface", {}, 2, 2),
}
