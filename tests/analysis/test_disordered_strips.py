"""Transfer matrices of many samples: averages of xi over them, their crossings with errors, what rounding hides."""

from __future__ import annotations

import numpy as np
import pytest
from harness import one_sentence, run

import spinsim as ss
from spinsim.analysis.strips import length_crossings, length_curve, scaled_lengths
from spinsim.analysis.tables import with_error
from spinsim.jobs.transfer.figures import lengths_figure
from spinsim.jobs.transfer.run import read

TEMPERATURES = np.linspace(1.4, 3.8, 13)
WIDTHS = (4, 6)


@pytest.fixture(scope="module")
def classes() -> dict[int, ss.TransferResult]:
    """Of the ferromagnet and of a chain with one negative bond, for each width."""
    found = {}
    for width in WIDTHS:
        bonds = np.ones((2, width))
        bonds[1, 0] = -1
        found[width] = ss.transfer(ss.Ising(ss.chain(width), bonds), temperature=TEMPERATURES, device="cpu")
    return found


def glass(classes, width: int, samples: int, seed: int) -> ss.TransferResult:
    """Chains of +-J with nine positive bonds of ten.

    Flipping the same spins in all layers changes no level, so that each sample has those of one of the two classes,
    whichever the sign of the product of its bonds is.
    """
    model = ss.EdwardsAnderson(ss.chain(width), samples=samples, seed=seed, bond_fraction=0.9)
    frustrated = (model.couplings.prod(axis=1) < 0).astype(int)
    record, points = classes[width].record.copy(), len(TEMPERATURES)
    spectrum = record.groups["spectrum"]
    for name, array in spectrum.arrays.items():
        if array.axes[0] == "step":
            rows = np.asarray(array.values).reshape(2, points, *array.values.shape[1:])[frustrated]
            spectrum.arrays[name] = array._replace(values=rows.reshape(-1, *rows.shape[2:]))
    spectrum.arrays["sample"] = spectrum.arrays["sample"]._replace(values=np.repeat(np.arange(samples), points))
    return read(record, model)


def test_levels_depend_on_the_product_of_the_bonds(classes) -> None:
    expected = glass(classes, 4, 8, seed=3)
    found = ss.transfer(expected.model, temperature=TEMPERATURES, device="cpu")
    assert len(np.unique(found.gap[:, 0].round(9))) == 2
    np.testing.assert_allclose(found.levels, expected.levels, rtol=1e-10)
    np.testing.assert_allclose(found.correlation_length, expected.correlation_length, rtol=1e-8)


def test_averages_over_samples(classes) -> None:
    result = glass(classes, 6, 30, seed=1)
    xi = result.correlation_length[:, :, 1, 0]
    np.testing.assert_allclose(scaled_lengths(result), xi.mean(axis=0) / 6)
    np.testing.assert_allclose(scaled_lengths(result, "typical"), np.exp(np.log(xi).mean(axis=0)) / 6)
    assert (scaled_lengths(result, "typical") < scaled_lengths(result)).all()
    with pytest.raises(ss.InputError, match="average 'median' is unknown: choose mean or typical"):
        scaled_lengths(result, "median")
    curve = length_curve(result)
    relative = xi.std(axis=0) / np.sqrt(30) / xi.mean(axis=0)
    np.testing.assert_allclose(curve.log_error, relative[::-1][np.argsort(1 / result.k[::-1])], rtol=0.1)


def test_samples_of_one_disorder_seed_are_resampled_together(classes) -> None:
    """They begin with the same bonds: curves of both widths rise and fall together, and their crossing less."""
    together, apart = (
        length_crossings([glass(classes, 4, 100, 1), glass(classes, 6, 100, seed)])[0] for seed in (1, 2)
    )
    assert 0 < together.error < 0.85 * apart.error
    one, other = (length_curve(glass(classes, width, 100, 1)) for width in WIDTHS)
    assert np.corrcoef(one.log[1:, 0], other.log[1:, 0])[0, 1] > 0.4


def test_one_sample_has_no_error(classes) -> None:
    (found,) = length_crossings([glass(classes, width, 1, 5) for width in WIDTHS])
    assert np.isnan(found.error)


def test_plot_prints_the_error_over_samples(classes, tmp_path, capsys, monkeypatch) -> None:
    files = [glass(classes, width, 60, 7).save(tmp_path / f"{width}.h5") for width in WIDTHS]
    monkeypatch.chdir(tmp_path)
    found = {}
    for average in ("mean", "typical"):
        outcome = run(capsys, monkeypatch, "plot", *files, "--average", average, "--near", 2, "--out", f"{average}.pdf")
        assert outcome.status == 0, outcome
        found[average] = outcome.out.splitlines()
    crossing = length_crossings([glass(classes, width, 60, 7) for width in WIDTHS])[0]
    assert f"T = {with_error(crossing.temperature, crossing.error)} over samples" in found["mean"][1]
    assert "interpolation within" in found["mean"][1]
    assert found["typical"][0].split() == ["widths", "crossing", "of", "exp[ln", "xi]", "/", "L"]
    assert found["typical"][1] != found["mean"][1]
    one_sentence(run(capsys, monkeypatch, "plot", files[0], "--near", "2"), "--near is for the crossings")
    one_sentence(run(capsys, monkeypatch, "plot", files[0], "--average", "median"), "'median'", "mean or typical")


def test_figure_has_bars_and_a_logarithmic_axis(classes) -> None:
    pair = [glass(classes, width, 60, 7) for width in WIDTHS]
    crossings = length_crossings(pair)
    ax = lengths_figure(pair, crossings).axes[0]
    assert ax.get_yscale() == "log"
    assert len(ax.containers) == 3
    (bars,) = ax.containers[0].lines[2]
    curve = length_curve(pair[0])
    segments = np.array(bars.get_segments())
    order = np.argsort(segments[:, 0, 0])
    x = curve.temperature
    height = (segments[:, 1, 1] - segments[:, 0, 1])[order]
    np.testing.assert_allclose(height, (2 * curve.value * np.sinh(curve.log_error))[np.argsort(x)])
    (across,) = ax.containers[2].lines[2]
    width = np.ptp(across.get_segments()[0][:, 0])
    assert width == pytest.approx(2 * crossings[0].error)


def test_lengths_that_rounding_hides_are_flagged(capsys, monkeypatch, tmp_path) -> None:
    """Seven of ten samples have xi = 2.53e12, of which rounding leaves two digits: no mean is made of them."""
    model = ss.EdwardsAnderson(ss.chain(12), samples=10)
    result = ss.transfer(model, temperature=[0.8, 1.2, 1.6, 2.0], device="cpu")
    xi, hidden = result.correlation_length[:, 0, 1, 0], result.in_noise[:, 0, 1, 0]
    assert hidden.sum() == 7
    assert (xi[hidden] > 1e12).all()
    assert not result.in_noise[:, 1:].any()
    assert np.isnan(scaled_lengths(result)).tolist() == [True, False, False, False]
    monkeypatch.chdir(tmp_path)
    result.save("a.h5")
    outcome = run(capsys, monkeypatch, "plot", "a.h5")
    assert "1 of 4 couplings without a finite xi / L in all samples are left out" in outcome.err
    assert "rounding may have changed 7 of 40 lengths by more than 1 %" in outcome.err
    shown = run(capsys, monkeypatch, "show", "a.h5").out
    assert "e+12?" in shown
    assert "? 7 lengths xi that rounding may have changed by more than 1 %" in shown


@pytest.mark.slow
@pytest.mark.parametrize("average", ["mean", "typical"])
@pytest.mark.parametrize("shift", [0, 1000], ids=["one disorder seed", "two disorder seeds"])
def test_errors_of_crossings_are_their_spread(classes, average: str, shift: int) -> None:
    found = []
    for seed in range(60):
        pair = [glass(classes, width, 100, seed + shift * k) for k, width in enumerate(WIDTHS)]
        found += length_crossings(pair, average)
    values, errors = (np.array([getattr(c, name) for c in found]) for name in ("temperature", "error"))
    ratio = values.std(ddof=1) / np.sqrt((errors**2).mean())
    assert np.isfinite(values).all()
    assert 0.85 < ratio < 1.2, ratio
