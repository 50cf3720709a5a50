"""Files and results say which model ran, whether it was given in Python, as an instance or by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import spinsim as ss

SHORT = {"temperatures": [1.0, 1.5], "sweeps": 2, "measure_every": 1, "thermalize": 0, "threads": 1}


def test_the_model_of_a_python_run_is_described_as_it_is(tmp_path: Path) -> None:
    model = ss.EdwardsAnderson(ss.cubic(2, 2, 4, periodic=False), samples=3, seed=7, couplings="gaussian", dilution=0.1)
    path = tmp_path / "run.h5"
    result = ss.temper(model, **SHORT, out=path)
    said = result.config["model"]
    wanted = {"lattice": "cubic", "size": "2x2x4", "boundary": "open", "samples": 3, "sites": 16, "disorder_seed": 7}
    wanted |= {"couplings": "gaussian", "dilution": 0.1, "instance": f"python:{model.name}"}
    assert wanted.items() <= said.items()
    longer = ss.resume(path, sweeps=4)  # the model is read from the file, which holds no seed of such couplings
    assert longer.config["model"] == said


def test_nothing_is_said_of_a_model_that_is_not_known() -> None:
    couplings = np.where(np.arange(24).reshape(3, 8) % 3, 1, -1)
    result = ss.temper(ss.Ising(ss.square(2), couplings=couplings), **SHORT)
    said = result.config["model"]
    assert said == {
        "instance": "python:square-2x2", "lattice": "square", "size": "2x2", "boundary": "periodic", "field": 0.0,
        "samples": 3, "sites": 4,
    }  # fmt: skip
    graph = ss.Graph(3, [[0, 1], [1, 2]])
    said = ss.temper(ss.Ising(graph, couplings=[1.0, 0.5]), **SHORT).config["model"]
    assert said == {"instance": f"python:{graph.label}", "field": 0.0, "samples": 1, "sites": 3}


def test_a_quantum_run_is_described_in_space() -> None:
    result = ss.quantum(ss.EdwardsAnderson(ss.chain(4), 2, 5), k=0.3, slices=4, sweeps=2, measure_every=1, thermalize=0)
    wanted = {"lattice": "chain", "size": "4", "sites": 4, "couplings": "pm-j", "disorder_seed": 5, "samples": 2}
    assert wanted.items() <= result.config["model"].items()


def test_a_model_that_is_read_from_a_file_knows_its_seed(tmp_path: Path) -> None:
    model = ss.EdwardsAnderson(ss.chain(6), samples=2, seed=9, couplings="gaussian")
    path = ss.temper(model, **SHORT).save(tmp_path / "run.h5")
    again = ss.temper(ss.load(path).model, **SHORT)
    assert again.config["model"]["disorder_seed"] == 9
