"""Joint distributions of overlaps against sums over all groups of copies, in plain Python."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from harness import run

import spinsim as ss
from spinsim.errors import InputError

OF_GROUP = (min, max, np.median, np.mean)
MODEL = ss.EdwardsAnderson(ss.square(4), samples=5, seed=3)


@pytest.fixture(scope="module")
def result():
    return ss.temper(
        MODEL, [1.0, 2.0], 60, 20, replicas=4, measure_every=2, save_configurations=5, device="cpu", threads=1
    )


def numbers(result, t, names, copies, box):
    """Pairs x, y of all groups of copies, with weights of equal sum for each sample and moment, one list a sample."""
    saved, ends, found = result.configurations, MODEL.graph.edges, [[] for _ in range(5)]
    for k in range(saved.shape[0]):
        for sample, spins in enumerate(saved.row(k)[:, :, t].astype(int)):
            for group in combinations(range(4), copies):
                q = [spins[a] * spins[b] for a, b in combinations(group, 2)]
                q_of = [one.mean() for one in q]
                group_of = {
                    "q_min": min(q_of),
                    "q_max": max(q_of),
                    "q_median": np.median(q_of),
                    "q_mean": np.mean(q_of),
                }
                for one in q:
                    grid = one.reshape(4, 4)
                    tiles = [grid[y : y + box, x : x + box].mean() for y in range(0, 4, box) for x in range(0, 4, box)]
                    link = np.mean([one[i] * one[j] for i, j in ends])
                    of_pair = {"q": [one.mean()] * len(tiles), "q_link": [link] * len(tiles), "q_box": tiles}
                    both = [of_pair[name] if name in of_pair else [group_of[name]] * len(tiles) for name in names]
                    found[sample] += zip(*both, strict=True)
    return [np.array(one) for one in found]


@pytest.mark.parametrize(
    ("x", "y", "copies"),
    [("q", "q_link", 2), ("q", "q_box", 2), ("q_median", "q_min", 3), ("q_median", "q", 4), ("q_mean", "q_link", 3),
     ("q_max", "q_mean", 4)],
)  # fmt: skip
def test_sums_over_all_groups(result, x, y, copies) -> None:
    bins, quantiles = 8, 3
    found = ss.joint(result, x, y, copies, bins, quantiles)
    for t in range(2):
        samples = numbers(result, t, (x, y), copies, 2)
        whole = np.concatenate(samples)
        cell = np.minimum((whole + 1) / 2 * bins, bins - 1).astype(int)
        density = np.zeros((bins, bins))
        np.add.at(density, tuple(cell.T), (bins / 2) ** 2 / len(whole))
        assert np.allclose(found["density"].value[t], density)
        for k in range(bins):
            at = whole[cell[:, 0] == k, 1]
            if len(at):
                assert np.isclose(found["mean"].value[t, k], at.mean())
                assert np.isclose(found["variance"].value[t, k], at.var())
        left = sum(whole[cell[:, 0] == k, 1].var() * np.mean(cell[:, 0] == k) for k in np.unique(cell[:, 0]))
        assert np.isclose(found["within"].value[t], left / whole[:, 1].var())
        # bins of x in order, each as a block of equal numbers, are dealt to quantiles
        order = cell[np.argsort(cell[:, 0], kind="stable")]
        share = np.zeros((quantiles, bins))
        for k in np.unique(order[:, 0]):
            first, last = np.flatnonzero(order[:, 0] == k)[[0, -1]] / len(order) + [0, 1 / len(order)]
            y_of = np.bincount(order[order[:, 0] == k, 1], minlength=bins) / np.sum(order[:, 0] == k)
            for n in range(quantiles):
                share[n] += max(0, min(last, (n + 1) / quantiles) - max(first, n / quantiles)) * y_of * quantiles
        assert np.allclose(found["conditioned"].value[t], share * bins / 2)
        of_samples = np.zeros((5, bins, bins))
        for k, one in enumerate(np.split(cell, 5)):
            np.add.at(of_samples[k], tuple(one.T), (bins / 2) ** 2 / len(one))
        assert np.allclose(found["density"].error[t], of_samples.std(axis=0, ddof=1) / np.sqrt(5))


def test_distribution_of_overlaps_is_that_of_the_run(result) -> None:
    whole = ss.temper(MODEL, [1.0, 2.0], 60, 20, measure_every=2, save_configurations=1, device="cpu", threads=1)
    found = ss.joint(whole, bins=17)
    q = whole.overlap[:, :, :, 0].ravel() / 16
    assert np.allclose(
        found["density"].value[0].sum(axis=1) * (2 / 17) ** 2, np.histogram(q, np.linspace(-1, 1, 18))[0] / q.size
    )


@pytest.mark.parametrize("what", ["joint", "quantiles", "triangles", "boxes"])
def test_commands_and_figures(result, what, tmp_path, capsys, monkeypatch) -> None:
    path = result.save(tmp_path / "glass.h5")
    assert "var(" in run(capsys, monkeypatch, "analyze", "--what", what, path).out
    if what == "joint":
        assert run(capsys, monkeypatch, "plot", "--what", what, path, "--out", tmp_path / "j.svg").status == 0


@pytest.mark.parametrize("given", [{"x": "m"}, {"copies": 5}, {"y": "q_box", "box": 3}, {"bins": 0}])
def test_refusals(result, given) -> None:
    with pytest.raises(InputError, match="copies"):
        ss.joint(result, **given)
