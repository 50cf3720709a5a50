"""What figures show: legends, points, and annealing runs to draw."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import spinsim as ss
from spinsim.jobs.anneal.result import AnnealResult

LADDER = np.geomspace(3, 0.5, 12)
RING = ss.Graph(12, np.stack([np.arange(12), np.roll(np.arange(12), -1)], axis=1).astype(np.int32))


def legend(figure: Figure) -> list[str]:
    """Labels, row by row in a legend of one row."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn(figure: Figure, panel: int = 0, series: int = 0) -> np.ndarray:
    """Points (x, y) with error bars."""
    return figure.axes[panel].containers[series].lines[0].get_xydata()


def anneal(model: ss.Ising, temperatures=LADDER, replicas: int = 16) -> AnnealResult:
    """A short run."""
    return ss.anneal(model, temperatures=temperatures, replicas=replicas)


def annealed(model: ss.Ising) -> AnnealResult:
    """A result that took no simulation; spins of both signs."""
    row, spins = np.zeros((2, 1, 2)), np.where(np.arange(model.sites) % 3, 1, -1).astype(np.int8)[None]
    return AnnealResult(model, np.array([2.0, 1.0]), row, row.astype(np.int64), row[0], spins)
