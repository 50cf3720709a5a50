"""The operator that shows the lowest level of a parity best, from saved configurations.

The spins s_x of a small space, or products of two of them less their averages, are operators O_a of one parity, whose
correlations C_ab(t), the averages over slices of O_a(tau) O_b(tau + t), are sums over the levels of that parity. Levels
near each other, of which C(t) of a single operator tells no two apart, are eigenvectors there: the combination v of
the largest lambda in C(1) v = lambda C(0) v has least to do with all levels but the lowest, and what is left of those
that the operators span at all decays with later times. Each half of a run is measured with the combination that the
other half gave: noise that was taken for a signal in one half is none in the other, so that C(t) is unbiased.

Sources: C. Michael, Nucl. Phys. B 259, 58 (1985); M. Luescher, U. Wolff, Nucl. Phys. B 339, 222 (1990); B. Blossier,
M. Della Morte, G. von Hippel, T. Mendes, R. Sommer, JHEP 04 (2009) 094.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, rfft
from scipy.linalg import eigh

from spinsim.analysis.decay import FEWEST_STEPS
from spinsim.analysis.runs import Tempered
from spinsim.bits import Bits, unpacked_spins
from spinsim.model.graph import Graph
from spinsim.saved import Configurations

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MOST_OPERATORS: Final = 128
"""Of a matrix: more would take long, and noise of ever longer runs."""
_MOST_TIMES: Final = 16
_TRAINED: Final = 2**13
"""Configurations of a half, at most, that a combination is found from."""
_TOGETHER: Final = 2**16
"""Slices of configurations whose operators are in memory at a time; their sums are exact in float32."""
_DEPENDENT: Final = 1e-6
"""Of the largest eigenvalue of C(0): combinations below it hardly change at all, and are left out."""


class Leading(NamedTuple):
    """What one sample shows at one place of the ladder.

    Attributes:
        series: C(t) of the operator at each saved row, (rows, copies, times); of even parity averaged over copies.
        times: In slices.
        operators: How many it was combined of.
    """

    series: Array
    times: Integers
    operators: int


def has_leading(result: Tempered, parity: str) -> bool:
    """Returns whether enough configurations of a small space are there; even parity takes those of two copies."""
    found: Configurations | None = getattr(result, "configurations", None)
    if found is None or found.shape[0] < FEWEST_STEPS or (parity == "even" and found.shape[2] < 2):
        return False
    return _operators(result.model.graph, parity) is not None


def leading(result: Tempered, parity: str, samples: Iterable[int]) -> Iterator[list[Leading]]:
    """Returns what samples show, at each place of the ladder, where ``has_leading``."""
    found: Configurations = result.configurations  # type: ignore[attr-defined]
    operators, even = _operators(result.model.graph, parity), parity == "even"
    assert operators is not None  # noqa: S101  (as has_leading says)
    lines = result.model.graph.world_lines().astype(np.int64)
    for sample in samples:
        bits = found.of_sample(sample)
        yield [_leading(bits[:, :, place], lines, operators, even) for place in range(bits.shape[2])]


def _operators(graph: Graph, parity: str) -> Integers | None:
    """Returns the rows of ``world_lines`` whose product each operator is, (operators, 1 or 2); None for too many.

    Those of even parity are the products of all pairs of sites, where these are too many those of neighbours.
    """
    sites = graph.sites // graph.slices
    if parity == "odd":
        return np.arange(sites)[:, None] if sites <= MOST_OPERATORS else None
    pairs = np.stack(np.triu_indices(sites, 1), axis=1)
    chosen = pairs if len(pairs) <= MOST_OPERATORS else np.unique(np.sort(graph.bonds_in_space(), axis=1), axis=0)
    return chosen.astype(np.int64) if 0 < len(chosen) <= MOST_OPERATORS else None


class _Half(NamedTuple):
    """What half of a run is measured with: weights of the operators, and their averages that are taken off."""

    weights: Array
    averages: Array


def _leading(bits: Bits, lines: Integers, operators: Integers, even: bool) -> Leading:
    """Returns what the configurations (rows, copies, bytes) show."""
    middle = len(bits) // 2
    halves = bits[:middle], bits[middle:]
    of_other = [_trained(half, lines, operators, even) for half in halves[::-1]]
    times = np.arange(1, min(_MOST_TIMES, lines.shape[1] // 2) + 1)
    parts = [_measured(*each, lines, operators, times) for each in zip(halves, of_other, strict=True)]
    correlation, mean = (np.concatenate([part[k] for part in parts]) for k in range(2))
    if even:  # the mean's square from all pairs of copies, which are independent
        others = (mean.sum(axis=1, keepdims=True) - mean) / (mean.shape[1] - 1)
        correlation = (correlation - (mean * others)[..., None]).mean(axis=1, keepdims=True)
    return Leading(correlation, times, len(operators))


def _spins(bits: Bits, lines: Integers) -> Iterator[tuple[slice, npt.NDArray[np.int8]]]:
    """Yields spins (configurations, sites of space, slices) of configurations (configurations, bytes) in parts."""
    together = max(1, _TOGETHER // lines.shape[1])
    for first in range(0, len(bits), together):
        chosen = slice(first, first + together)
        yield chosen, unpacked_spins(bits[chosen], lines.size)[:, lines]


def _trained(bits: Bits, lines: Integers, operators: Integers, even: bool) -> _Half:
    """Returns the combination that half of a run gives."""
    flat = bits.reshape(-1, bits.shape[-1])
    chosen = flat[:: max(1, -(-len(flat) // _TRAINED))]
    many, slices = len(operators), lines.shape[1]
    now, later, total = np.zeros((many, many)), np.zeros((many, many)), np.zeros(many)
    for _, spins in _spins(chosen, lines):
        by_site: Any = np.ascontiguousarray(spins.swapaxes(0, 1), np.float32)
        values = by_site[operators[:, 0]]
        if operators.shape[1] == 2:
            values *= by_site[operators[:, 1]]
        at, after = values.reshape(many, -1), np.roll(values, -1, axis=2).reshape(many, -1)
        now += at @ at.T
        later += at @ after.T
        total += at.sum(axis=1)
    count = len(chosen) * slices
    averages = total / count if even else np.zeros(many)
    square = np.outer(averages, averages)
    now, later = now / count - square, (later + later.T) / (2 * count) - square
    sizes, directions = eigh(now)
    there = sizes > _DEPENDENT * sizes[-1]
    if not there.any():  # nothing has changed in this half
        return _Half(np.zeros(many), averages)
    basis = directions[:, there] / np.sqrt(sizes[there])
    return _Half(basis @ eigh(basis.T @ later @ basis)[1][:, -1], averages)


def _measured(bits: Bits, by: _Half, lines: Integers, operators: Integers, times: Integers) -> tuple[Array, Array]:
    """Returns C(t) (rows, copies, times) of a combination in the other half, and its mean (rows, copies)."""
    flat = bits.reshape(-1, bits.shape[-1])
    form = np.zeros((len(lines), len(lines)))
    form[operators[:, 0], operators[:, -1]] = by.weights
    constant = float(by.weights @ by.averages)
    found, mean = np.empty((len(flat), len(times))), np.empty(len(flat))
    for chosen, spins in _spins(flat, lines):
        of_space = spins.swapaxes(1, 2).astype(np.float64)
        if operators.shape[1] == 1:
            one = of_space @ form.diagonal() - constant
        else:
            one = (of_space @ form * of_space).sum(axis=2) - constant
        mean[chosen] = one.mean(axis=1)
        found[chosen] = _around(one)[:, times]
    return found.reshape(*bits.shape[:2], -1), mean.reshape(bits.shape[:2])


def _around(series: Array) -> Array:
    """Returns averages over tau of o(tau) o(tau + t) around rings (configurations, slices), for all t."""
    waves = rfft(series, axis=1)
    return np.asarray(irfft(waves.real**2 + waves.imag**2, series.shape[1], axis=1) / series.shape[1])
