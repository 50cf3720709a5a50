"""Are error bars as large as results scatter? Spread over error of every column and of crossings, over 180 runs."""

from __future__ import annotations

import numpy as np
import pytest

import spinsim as ss
from spinsim.analysis import sizes
from spinsim.analysis.runs import samples_of
from spinsim.analysis.summary import estimates

RUNS = 180  # which know the ratio to 5 %, where 60 know it to 9 %
LADDER = np.array([1.8, 2.3, 3.0, 4.0])


def runs_of(graph: ss.Lattice, couplings: np.ndarray, field: float, ladder: np.ndarray, sweeps: int, copies: int):
    """Runs whose disorder is ``couplings`` (runs, samples, bonds): one simulation, whose samples are dealt to them."""
    runs, samples, bonds = couplings.shape
    model = ss.Ising(graph, couplings.reshape(runs * samples, bonds), field)
    whole = ss.temper(model, ladder, sweeps, thermalize=200, replicas=copies, measure_every=5, seed=11)
    return [samples_of(whole, slice(k * samples, (k + 1) * samples)) for k in range(runs)]


def made(kind: str, field: float) -> list[ss.TemperResult]:
    """Runs of a 4 x 4 lattice: each one ferromagnet, or a draw of 6 samples with 3 of 4 bonds positive."""
    if kind == "ferromagnet":
        return runs_of(ss.square(4), np.ones((RUNS, 1, 32)), field, LADDER, 5000, 4)
    signs = np.random.default_rng(7).choice([-1.0, 1.0], (RUNS, 6, 32), p=[0.25, 0.75])
    return runs_of(ss.square(4), signs, field, LADDER, 400, 4)


@pytest.mark.slow
@pytest.mark.parametrize("field", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["ferromagnet", "glass"])
def test_every_column_is_calibrated(kind: str, field: float) -> None:
    """Squares of spreads and errors are summed over the temperatures, each in units of its own error."""
    found = [estimates(run) for run in made(kind, field)]
    table, wrong = [f"{'column':40}{'spread / error':>16}"], []
    for name in found[0]:
        values, errors = (np.array([getattr(run[name], part) for run in found]) for part in ("value", "error"))
        known = np.isfinite(values) & np.isfinite(errors)  # xi of little more than noise is NaN
        kept = known.mean(axis=0) > 0.9
        assert kept.sum() > 1, name
        spread = np.nanvar(np.where(known, values, np.nan)[:, kept], axis=0, ddof=1)
        scatter = spread / np.nanmean(np.where(known, errors, np.nan)[:, kept] ** 2, axis=0)
        ratio = float(np.sqrt(scatter.mean()))
        table.append(f"{name:40}{ratio:16.3f}   {np.round(np.sqrt(scatter), 2)}")
        wrong += [name] if not 0.85 <= ratio <= 1.2 else []
    print("\n".join(["", *table]))  # noqa: T201
    assert not wrong, "\n".join(table)


@pytest.mark.slow
def test_crossings_are_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ferromagnets of sides 4 and 6, where Binder cumulants and xi / L of one sample each cross."""
    monkeypatch.setattr(sizes, "RESAMPLES", 100)  # errors to 7 %
    ladder = np.linspace(2.0, 2.6, 5)
    runs = [runs_of(ss.square(side), np.ones((RUNS, 1, 2 * side**2)), 0.0, ladder, 4000, 2) for side in (4, 6)]
    crossed = [[found.crossings[0].crossing for found in sizes.compare_sizes(pair)] for pair in zip(*runs, strict=True)]
    for k, name in enumerate(("binder_cumulant", "correlation_length_over_L")):
        values, errors = (np.array([getattr(found[k], part) for found in crossed]) for part in ("value", "error"))
        known = np.isfinite(errors)
        ratio = values[known].std(ddof=1) / np.sqrt((errors[known] ** 2).mean())
        print(f"\ncrossing of {name}: {ratio:.3f}, {known.sum()} of {RUNS}, mean {values[known].mean():.4f}")  # noqa: T201
        assert 0.85 <= ratio <= 1.2
        assert known.mean() > 0.9
