"""Joint distribution of two overlaps of copies: P(q, q_l), P(q) at given quantiles, three copies, boxes.

Groups of two, three or four copies have overlaps of all pairs: ``q``, ``q_link`` and ``q_box`` (of each box of b^d
sites) are numbers of each pair, ``q_min``, ``q_median``, ``q_max`` and ``q_mean`` of the overlaps of a group.

Sources: M. Baity-Jesi et al. (Janus), J. Stat. Mech. P05014 (2014) for quantiles of four copies; P. Contucci et al.,
Phys. Rev. Lett. 99, 057206 (2007) for three copies; E. Marinari et al., Phys. Rev. Lett. 81, 1698 (1998) for boxes.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.analysis.runs import Array
from spinsim.analysis.space.entries import Measured, bins_of, entries_of, in_quantiles, periodic_grid, saved_run
from spinsim.analysis.space.estimates import Estimates, Panel
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.inputs.texts import either
from spinsim.result import Run

_OF_GROUP: Final[dict[str, Any]] = {"q_min": np.min, "q_median": np.median, "q_max": np.max, "q_mean": np.mean}
_KNOWN: Final = ("q", "q_link", "q_box", *_OF_GROUP)


@public
def joint(
    run: Run, x: str = "q", y: str = "q_link", copies: int = 2, bins: int = 16, quantiles: int = 5, box: int = 2
) -> Estimates:
    """Joint distribution of two overlaps x and y, moments of y at given x, and P(y) in each quantile of x.

    Args:
        run: A tempering run with ``save_configurations``, or its file.
        x: ``q``, ``q_link``, ``q_box`` or, of the pairs of a group, ``q_min``, ``q_median``, ``q_max``, ``q_mean``.
        y: Likewise.
        copies: Copies of a group: 2, 3 or 4.
        bins: Bins of equal width from -1 to 1.
        quantiles: Number of quantiles of x, of equal shares; bins at their ends are divided.
        box: Side of the boxes of ``q_box``, which divides all sides of the lattice.

    Returns:
        ``density`` P(x, y), (temperatures, bins of x, bins of y); ``mean`` and ``variance`` of y at given x,
        (temperatures, bins of x); ``conditioned`` P(y), (temperatures, quantiles, bins of y); ``within``, the share of
        the variance of y that is left at given x, (temperatures,). ``arrays`` has the ``middle`` of bins.

    Raises:
        InputError: for a run that has saved no configurations or has too few copies, and unknown overlaps.
    """
    result, saved = saved_run(run, copies)
    sides = periodic_grid(result).shape if "q_box" in (x, y) else ()
    known = {x, y} <= {*_KNOWN} and copies in (2, 3, 4) and min(bins, quantiles, box) > 0
    if not known or any(side % box for side in sides):
        raise InputError(
            f"there are no overlaps {x} and {y} of {copies} copies in {bins} bins, {quantiles} quantiles and boxes of "
            f"{box}: give {either(_KNOWN)}, 2 to 4 copies, and a box that divides all sides"
        )
    boxes = [(side // box, box) for side in sides[::-1]]
    measure = partial(_measure, result.model.graph.edges, boxes, (x, y), copies, bins)
    averages, width = entries_of(result, [saved], measure, ("guide",)), 2 / bins

    def variance(sums: Array) -> Array:
        return np.asarray(sums[:, 2] / sums[:, 0] - (sums[:, 1] / sums[:, 0]) ** 2)

    def within(sums: Array) -> Array:
        return np.asarray(np.nansum(sums[:, 0] * variance(sums), axis=1) / variance(sums.sum(axis=2)))

    found = {
        "density": averages.estimate(lambda share: share / width**2, "share"),
        "mean": averages.estimate(lambda sums: sums[:, 1] / sums[:, 0], "sums"),
        "variance": averages.estimate(variance, "sums"),
        "conditioned": averages.estimate(
            lambda share: in_quantiles(share.sum(axis=2), share, quantiles) / width, "share"
        ),
        "within": averages.estimate(within, "sums"),
    }
    arrays = {"temperature": result.temperature, "middle": (np.arange(bins) + 0.5) * width - 1}
    labels = tuple(f"quantile {k + 1}" for k in range(quantiles))
    given, of = (rf"$q_{{\rm {name[2:]}}}$" for name in (x, y))
    coldest = Panel(arrays["middle"], found["conditioned"][0], (of, f"density of {of}"), labels)
    panels = [Panel(arrays["middle"], found["variance"], (given, f"variance of {of}")), coldest]
    words = f"{y} of {copies} copies at given {x}, quantiles at the lowest temperature"
    return Estimates(words, arrays, found, {f"var({y} at {x}) / var({y})": found["within"]}, panels)


def _measure(
    ends: npt.NDArray[np.int32], boxes: list[tuple[int, int]], names: tuple[str, str], copies: int, bins: int,
    spins: npt.NDArray[np.int8],
) -> Measured:  # fmt: skip
    """Return the histogram of one sample at one moment, and in each bin of x sums of 1, y and y^2."""

    def of_pair(name: str, a: int, b: int) -> Any:  # (1 or boxes, temperatures)
        q = spins[a] * spins[b]
        if name == "q_box":
            split = q.reshape(-1, *(part for pair in boxes for part in pair))
            return split.mean(axis=tuple(range(2, split.ndim, 2))).reshape(len(q), -1).T
        return (q if name != "q_link" else q[:, ends[:, 0]] * q[:, ends[:, 1]]).mean(axis=1)[None]

    def of_group(name: str, group: tuple[int, ...]) -> Any:  # (1 or pairs, 1 or boxes, temperatures)
        of_pairs = np.array([of_pair(name, *pair) for pair in combinations(group, 2)])
        return _OF_GROUP[name](of_pairs, axis=0, keepdims=True) if name in _OF_GROUP else of_pairs

    groups, places = combinations(range(len(spins)), copies), np.arange(spins.shape[1])
    both = [np.array(np.broadcast_arrays(*(of_group(name, group) for name in names))) for group in groups]
    x, y = np.concatenate([one.reshape(2, -1, len(places)) for one in both], axis=1)
    i, j = (bins_of(one, bins) for one in (x, y))
    cell, cells = places * bins + i, len(places) * bins
    share = np.bincount((cell * bins + j).ravel(), minlength=cells * bins).reshape(-1, bins, bins) / len(x)
    sums = [np.bincount(cell.ravel(), (y**power).ravel(), cells).reshape(-1, bins) / len(x) for power in range(3)]
    return {"share": share, "sums": np.stack(sums, axis=1), "guide": np.mean([x**2, y**2], axis=1).T}
