"""Transfer-matrix runs: files, levels that did not converge, interruptions, the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import xarray
from harness import contents, finish, one_sentence, run, spinsim

import spinsim as ss
from spinsim.benchmark.transfer import _peer_basis, rates
from spinsim.jobs.transfer.run import Work
from spinsim.jobs.transfer.settings import Transfer
from spinsim.settings.config import build_config
from spinsim.transfer_matrix.lanczos import NotConvergedError
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.spectrum import Solver

OWN = ("command", "config")  # root attributes that name the file, and how it was run
HARD = "transfer --layer square --width 4 --couplings pm-j --samples 2 --k 0.05,0.29 --device cpu --out a.h5"
"""Of which some levels of some rows take more than 30 steps."""


def test_levels_that_do_not_converge_are_an_error_in_python() -> None:
    with pytest.raises(
        NotConvergedError, match=r"sample 0, k = 0.29, sector even: .* residual of .* give a larger tol"
    ):
        ss.transfer(ss.EdwardsAnderson(ss.square(4)), k=0.29, tolerance=1e-14, most_steps=10, device="cpu")


def test_rows_that_lack_levels_are_tried_again(do, capsys, monkeypatch) -> None:
    """What has converged is kept, the file says what is missing; with more steps it is that of a run with them."""
    path = do(HARD + " --most-steps 25 --basis 12")
    found = ss.load(path)
    assert found.there.all()
    assert not found.finished
    np.testing.assert_array_equal(found.incomplete, np.isnan(found.levels).any(axis=(2, 3)))
    whole = do(HARD + " --basis 12", "b")
    exact = ss.load(whole)
    known = np.isfinite(found.levels)
    assert known.any()
    assert not known.all()
    np.testing.assert_allclose(found.levels[known], exact.levels[known], rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(found.free_energy_per_site), ~known[:, :, 0, 0])
    assert (found.residual[~known] > 1e-10).any()

    lacking = int(found.incomplete.sum())
    shown = run(capsys, monkeypatch, "show", path).out
    assert "4 of 4 rows" in shown
    assert "NOT finished" in shown
    assert f"INCOMPLETE: {lacking} of 4 rows lack levels" in shown
    assert len(json.loads(run(capsys, monkeypatch, "show", "--json", path).out)["incomplete"]) == lacking

    before = contents(path)
    again = run(capsys, monkeypatch, "resume", path, "--threads", "1")
    assert again.status == 0
    assert again.err.count("levels converged") >= lacking
    assert contents(path) == before
    assert run(capsys, monkeypatch, "resume", path, "--most-steps", "2").status == 0
    assert contents(path) == before  # fewer steps lose nothing
    resumed = run(capsys, monkeypatch, "resume", path, "--most-steps", "5000")
    assert "INCOMPLETE" not in resumed.out
    assert ss.load(path).finished
    assert contents(path, *OWN) == contents(whole, *OWN)


def test_a_row_that_fails_keeps_its_place(do, capsys, monkeypatch) -> None:
    path = do("transfer --width 6 --couplings pm-j --samples 3 --disorder-seed 5 --k 0.3,5")
    found = ss.load(path)
    np.testing.assert_array_equal(found.k, [0.3, 5.0])
    assert np.isfinite(found.levels[:, 0]).all()
    assert np.isnan(found.levels).any()
    assert np.isfinite(found.free_energy_per_site).all()
    assert re.search(r"INCOMPLETE: \d of 6 .*sample \d at k = 5", run(capsys, monkeypatch, "show", path).out)


COMMAND = "transfer --layer square --width 3 --couplings pm-j --samples 3 --k 0.2:0.3:2 --device cpu"


def test_file(do) -> None:
    path = do(COMMAND)
    found = ss.load(path)
    assert found.finished
    assert found.levels.shape == (3, 2, 2, 2)
    assert found.log_eigenvalue["odd"].shape == (2, 3, 2)
    model = ss.EdwardsAnderson(ss.square(3), samples=3)
    again = ss.transfer(model, k=[0.2, 0.3], device="cpu")
    for name in ("levels", "residual", "correlation_length", "gap", "energy_per_site", "sigma", "sigma_sigma", "k"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    with h5py.File(path) as file:
        assert file["spectrum/sector"][...].tolist() == [b"even", b"odd"]
        assert file["spectrum/log_eigenvalue"].shape == (6, 2, 2)
    back = ss.load(again.save(path.with_name("b.h5")))
    np.testing.assert_array_equal(back.levels, again.levels)
    dataset = found.dataset()
    with xarray.open_dataset(path, group="spectrum", engine="h5netcdf") as opened:
        xarray.testing.assert_identical(dataset, opened.load())
    table = dataset.set_index(step=("sample", "k")).unstack("step")
    assert table.log_eigenvalue.sel(sector="even").shape == (2, 3, 2)
    assert dataset.attrs["job"] == "transfer"


def test_interrupted_run_is_completed(do, capsys, monkeypatch) -> None:
    whole = do(COMMAND)
    original, calls = Work.row, []

    def row(self, step, *solved):
        calls.append(step)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, step, *solved)

    monkeypatch.setattr(Work, "row", row)
    part = do(COMMAND + " --threads 1 --checkpoint-every 0", "b", status=130)
    assert not ss.load(part).finished
    assert "4 of 6 rows" in run(capsys, monkeypatch, "show", part).out
    assert json.loads(run(capsys, monkeypatch, "show", "--json", part).out)["planned_rows"] == 6
    do(f"resume runs/{part.name} --quiet", "b")
    assert contents(part, *OWN, "config_sha256") == contents(whole, *OWN, "config_sha256")


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as POSIX has them")
@pytest.mark.parametrize("options", ["--threads 1", "--threads 2", "--basis 0 --threads 1"])
def test_ctrl_c_ends_a_task_that_is_not_saved(do, monkeypatch, options: str) -> None:
    """With the next product; rows that are done stay."""
    product, make_rows, written, after = TransferOperator.apply, Work.solved, [], []

    def solved(self, *steps):
        for row in make_rows(self, *steps):
            yield row
            written.append(row)  # the run asks for the next one

    def apply(self, x, out):
        if written and not after:
            os.kill(os.getpid(), signal.SIGINT)
        if written:
            after.append(0)
            time.sleep(0.02)  # the main thread has its turn and hears the signal
        return product(self, x, out)

    line = f"transfer --width 13 --couplings pm-j --samples 8 --eigenvalues 6 --device cpu {options} --out a.h5"
    with monkeypatch.context() as changed:
        changed.setattr(TransferOperator, "apply", apply)
        changed.setattr(Work, "solved", solved)
        path = do(line, "b", status=130)
    assert len(after) < 100  # the other threads go on until the main one has its turn
    assert 0 < ss.load(path).there.sum() < 8
    do("resume a.h5", "b")
    assert contents(path, *OWN) == contents(do(line), *OWN)


KILLED = """
import os, signal
from spinsim.store import files
write, calls = files.write_into, []
def killed(disk, record):
    calls.append(0)
    if len(calls) == {1}:
        {0} and write(disk, record)
        os.kill(os.getpid(), signal.SIGKILL)
    return write(disk, record)
files.write_into = killed
"""


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("half", [True, False], ids=["within", "between"])
def test_kill_9_within_a_task(do, monkeypatch, tmp_path, half: bool) -> None:
    """Between and within checkpoints of a task: the run goes on from the last whole one, with the same numbers."""
    line = "transfer --width 18 --couplings pm-j --eigenvalues 2 --basis 7 --device cpu --threads 1 --quiet --out a.h5"
    whole = do(line)
    killed = spinsim(tmp_path, *line.split(), "--checkpoint-every", "0", code=KILLED.format(half, 4))
    assert finish(killed).status == -signal.SIGKILL
    path = tmp_path / "a.h5"
    assert not ss.load(path).there.any()
    with h5py.File(path) as file:
        assert "checkpoint" in file
    restored, original = [], Solver.restore
    monkeypatch.setattr(Solver, "restore", lambda self, saved: restored.append(0) or original(self, saved))
    do("resume a.h5", "../" + tmp_path.name)
    assert restored
    assert contents(path, *OWN) == contents(whole, *OWN)


@pytest.mark.system
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_kill_9_while_rows_are_tried_again(do) -> None:
    """The file lacks these levels as before, and the next run has them."""
    path, whole = do(HARD + " --most-steps 10 --basis 12"), do(HARD + " --basis 12", "b")
    before = ss.load(path)
    assert before.incomplete[0, 0]
    killed = spinsim(path.parent, "resume", "a.h5", "--most-steps", "5000", code=KILLED.format(True, 1))
    assert finish(killed).status == -signal.SIGKILL
    np.testing.assert_array_equal(ss.load(path).levels, before.levels)
    do("resume a.h5 --most-steps 5000")
    assert contents(path, *OWN) == contents(whole, *OWN)


def test_show_and_json(do, capsys, monkeypatch) -> None:
    path = do("transfer --width 8 --device cpu")
    monkeypatch.chdir(path.parent)
    text = run(capsys, monkeypatch, "show", path).out
    assert "7.4705965873" in text
    table = json.loads(run(capsys, monkeypatch, "show", "--json", path).out)
    assert table["log_eigenvalue"][0][0][1][0] == pytest.approx(7.3717624092, abs=1e-9)
    assert table["correlation_length"][0][0][0][0] is None
    line = "transfer --width 5 --field 0.3 --json --device cpu --out c.h5"
    summary = json.loads(run(capsys, monkeypatch, *line.split()).out)
    assert summary["sectors"] == ["all"]


def test_plot(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    for width in (4, 6):
        ss.transfer(ss.Ising(ss.chain(width)), k=np.linspace(0.4, 0.5, 5), device="cpu").save(f"{width}.h5")
    outcome = run(capsys, monkeypatch, "plot", "4.h5", "6.h5", "--out", "a.png")
    assert outcome.status == 0
    assert "T = 2.288" in outcome.out
    assert (tmp_path / "a.png").stat().st_size > 10_000
    one_sentence(
        run(capsys, monkeypatch, "plot", "4.h5", "--what", "foo"), "a transfer run and has no figure 'foo'", "lengths"
    )


def test_plot_says_what_it_leaves_out(do, capsys, monkeypatch) -> None:
    path = do("transfer --width 6 --k 0.4,0.5,9 --eigenvalues 1 --device cpu --out a.h5")
    assert "1 of 3 couplings without a finite xi / L" in run(capsys, monkeypatch, "plot", path).err
    path = do("transfer --width 6 --k 9 --eigenvalues 1 --device cpu --out b.h5")
    words = "ferromagnet has a finite xi / L at no coupling", "smaller couplings"
    one_sentence(run(capsys, monkeypatch, "plot", path), *words)
    path = do("transfer --width 6 --most-steps 1 --basis 5 --device cpu --out c.h5")
    one_sentence(run(capsys, monkeypatch, "plot", path), "at no coupling", "spinsim resume")


def test_energies_that_were_not_computed_are_not_shown(do, capsys, monkeypatch) -> None:
    shown = run(capsys, monkeypatch, "show", do("transfer --width 14 --eigenvalues 1 --basis 0 --device cpu")).out
    assert "Free energy per site  -2.1" in shown
    assert "nan" not in shown


def test_a_configuration_of_a_square_layer(do, tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.toml").write_text('[model]\nlattice = "square"\n')
    assert ss.load(do("transfer --config a.toml --device cpu")).model.lattice.shape == (4, 4)


def test_bench(capsys, monkeypatch) -> None:
    outcome = run(capsys, monkeypatch, "bench", "transfer", "--device", "cpu", "--width", "6,10", "--repeats", 1)
    assert outcome.status == 0
    assert outcome.out.count("butterfly") == outcome.out.count("kronecker") == 2


def test_what_cupys_solver_cannot_hold_is_not_run() -> None:
    assert _peer_basis(SimpleNamespace(dimension=2**20), "cpu", 20) == (20, "")
    stored, why = _peer_basis(SimpleNamespace(dimension=2**29), "cuda", 20)
    assert stored == 0
    assert "with 536870912 amplitudes: it counts the elements of its basis in 32 bits, so that 3 of these" in why


BAD = [
    ("transfer --layer cubic", "'cubic'", "choose chain or square"),
    ("transfer --layer square --width 7", "49 sites", "up to 40"),
    ("transfer --layer square --width 6 --device cpu", "36 sites", "of memory but", "choose a smaller width"),
    ("transfer --width 36 --basis 9 --device cpu", "of memory but", "or fewer stored vectors (basis)"),
    ("transfer --width 0", "'0'"),
    ("transfer --k 200", "k 200 overflows", "to 50 for this layer"),
    ("transfer --k 0.4 --k-time 99", "k_time 99 overflows", "to 50 for this layer"),
    ("transfer --temperature 1e-9", "overflows"),
    ("transfer --temperature 1e-320", "k inf"),
    ("transfer --temperature -2", "'-2'", "above 0"),
    ("transfer --k 0.3 --temperature 3", "leave one out"),
    ("transfer --k x", "'x'", "0.8:2:16"),
    ("transfer --k 0.1:0.2:3:4", "cannot be read"),
    ("transfer --k 0.1:0.2:0", "0 points"),
    ("transfer --k 0.1,0.2,0.3 --k-time 0.1,0.2", "2 of k_time do not fit 3"),
    ("transfer --k nan", "'nan'"),
    ("transfer --sector up", "'up'", "even, odd"),
    ("transfer --field 0.1 --sector odd", "'odd' does not exist in a field"),
    ("transfer --tolerance 1e-15", "1e-15", "1e-14"),
    ("transfer --eigenvalues 0", "eigenvalues 0"),
    ("transfer --width 4 --eigenvalues 9", "9 eigenvalues exceed the 8 states"),
    ("transfer --basis 4", "basis 4", "at least 5"),
    ("transfer --method fast", "'fast'", "butterfly"),
    ("transfer --seed -1", "seed -1"),
    ("transfer --most-steps 0", "most_steps 0"),
    ("bench transfer --width 2", "'2'", "4 to 40"),
    ("bench transfer --width 40", "40 sites", "choose a smaller width"),
]


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[0])
def test_bad_input(capsys, monkeypatch, tmp_path, line) -> None:
    monkeypatch.chdir(tmp_path)
    one_sentence(run(capsys, monkeypatch, *line[0].split()), *line[1:])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"temperature": -1}, "temperature -1.0 does not make"),
        ({"temperature": 0}, "temperature 0.0 does not make"),
        ({"temperature": 1e-320}, "k inf does not make"),
        ({"temperature": "x"}, "temperature 'x' cannot be read"),
        ({"k": []}, r"k has shape \(0,\)"),
        ({"k": [[0.1]]}, r"k has shape \(1, 1\)"),
        ({"k": 0.1, "k_time": []}, r"k_time has shape \(0,\)"),
        ({"k": [0.1, 200], "k_time": 0.1}, "k 200 overflows: .* to 150"),
        ({"k": 0.1, "temperature": 1}, "leave one out"),
    ],
)
def test_bad_couplings_in_python(given, words: str) -> None:
    with pytest.raises(ss.InputError, match=words):
        ss.transfer(ss.Ising(ss.chain(4)), device="cpu", **given)


def test_lists_in_a_configuration_are_strings() -> None:
    for table, words in (
        ({"transfer": {"k": [0.3, "x"]}}, "give a string, a number or a list of numbers"),
        ({"model": {"size": [4, 4.5]}}, "give a string, a number or a list of numbers"),
    ):
        with pytest.raises(ss.InputError, match=words):
            build_config(Transfer, table)


def test_the_benchmark_takes_a_basis_that_fits(monkeypatch) -> None:
    """Beside the two vectors of a product."""
    for count, fits in {16: True, 15: False}.items():  # a basis has six at least, which are all rotated at once
        monkeypatch.setattr("spinsim.benchmark.transfer.room", lambda gpu, count=count: count * 8 * 2**11)
        if fits:
            assert next(rates("cpu", 1, (12,), 1)).steps > 0
        else:
            with pytest.raises(ss.InputError, match="width 12 leaves no room for stored vectors: give smaller widths"):
                next(rates("cpu", 1, (12,), 1))


def test_a_layer_that_does_not_fit_is_refused_before_it_is_built(monkeypatch) -> None:
    monkeypatch.setattr("spinsim.machine.memory.available_bytes", lambda: 2**27)
    monkeypatch.setattr("spinsim.transfer_matrix.spectrum.available_bytes", lambda: 2**27)
    with pytest.raises(ss.InputError, match=r"24 sites, 2\^23 amplitudes a vector, needs 320.0 MiB of memory but 128"):
        ss.transfer(ss.Ising(ss.chain(24)), device="cpu")
    with pytest.raises(ss.InputError, match=r"choose a smaller width$"):
        ss.transfer(ss.Ising(ss.chain(24)), basis=0, device="cpu")
    with pytest.raises(ss.InputError, match=r"replicas 5 means nothing"):
        build_config(Transfer, {"run": {"replicas": 5}})


def test_analyze_says_what_serves_instead(do, capsys, monkeypatch) -> None:
    path = do("transfer --width 4 --device cpu --out a.h5")
    one_sentence(run(capsys, monkeypatch, "analyze", path), "no averages", f"spinsim show {path}", "spinsim plot")
