"""What host and device agree on, held without a GPU: names of arguments, numbers, layouts of structs."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import emulation.cupy
import numpy as np
import pytest
from emulation.compiler import SHIM, translate, why_not
from places import ROOT
from resources import instantiations, programs

import spinsim as ss
from spinsim.cuda import compile as compiling
from spinsim.cuda.launch import KEY, Launch, record
from spinsim.engine.measuring.correlations import Quantities
from spinsim.engine.moves.move import Moment
from spinsim.engine.moves.single_spin import SingleSpin
from spinsim.gemm import product as rungs
from spinsim.gemm import special
from spinsim.model.trotter import trotter
from spinsim.observables import clusters
from spinsim.observables.batch import Batch
from spinsim.observables.moments import Ladder, reduced_run
from spinsim.observables.quantities import Choice
from spinsim.optimum.enumeration_cuda import lowest_of_chunks
from spinsim.transfer_matrix.cuda import CudaButterfly
from spinsim.transfer_matrix.layer import Layer
from spinsim.transfer_matrix.vectors import CudaMix, fill_on_gpu

Kernels = set[tuple[str, str]]

KERNELS = ROOT / "kernels"
SOURCES = sorted(path.relative_to(KERNELS).as_posix() for path in KERNELS.rglob("*.cu*"))
NUMBERS = {"u32", "u64", "int", "long long", "size_t", "float", "double", "T"}  # by value
WITH_LAYOUTS = [  # each struct that a kernel takes is in one of them
    "tempering/temper_shared.cu", "tempering/temper_global.cu", "tempering/temper_spread.cu", "tempering/exchange.cu",
    "metropolis/site_packed.cu",
    "measuring/overlaps.cu", "gemm/naive.cu", "transfer_matrix/butterfly.cu",
    "metropolis/anisotropic.cu", "tempering/exchange_terms.cu", "measuring/by_temperature_terms.cu",
    "measuring/local.cu", "metropolis/replica_packed_degrees.cu", "metropolis/unpacked.cu",
    "tempering/temper_unpacked.cu", "measuring/reduce.cu", "measuring/energies.cu",
    "measuring/lowest.cu", "clusters/houdayer.cu", "clusters/fortuin_kasteleyn.cu", "clusters/flood.cu",
    "clusters/join.cu", "clusters/lattice_clusters.cu", "clusters/describe.cu", "metropolis/site_packed_words.cu",
    "tempering/measure_words.cu", "metropolis/single_spin.cu", "optimum/lowest_of_chunks.cu",
]  # fmt: skip
GEOMETRY = "Geometry"  # likewise of two
BARRIERS = "typename Barrier<LAYERS, SLABS>::type"  # one of three structs

MODELS = [
    ss.EdwardsAnderson(ss.cubic(4), samples=2),
    ss.EdwardsAnderson(ss.square(6), couplings="gaussian"),
    ss.Ising(ss.square(256, 4)),
    ss.Ising(ss.Graph(130, np.column_stack(np.triu_indices(130, 1))), np.arange(8385) % 3),
    ss.Ising(ss.Graph(130, np.column_stack(np.triu_indices(130, 1))), np.arange(8385) % 3 - 1),
    ss.EdwardsAnderson(ss.cubic(256, 2, 2)),
    ss.Ising(ss.Graph(41, np.column_stack([np.zeros(40, int), np.arange(1, 41)])), field=2),  # a site of degree 40
    ss.EdwardsAnderson(ss.square(4), couplings_along=(1, 0.5)),
    trotter(ss.EdwardsAnderson(ss.square(2)), 4),
    trotter(ss.EdwardsAnderson(ss.square(2), couplings="gaussian"), 4),
]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernels]:
    """Files and names of kernels that have been made ready for a launch; none of them is compiled or does anything."""
    found: Kernels = set()
    make = Launch.__init__

    def noted(self, device, file, expression, *given) -> None:
        make(self, device, file, expression, *given)
        found.add((file, expression.partition("<")[0]))

    monkeypatch.setattr(Launch, "__init__", noted)
    nothing = SimpleNamespace(launch_instance=lambda *given: None)
    monkeypatch.setattr(emulation.cupy, "compile_instance", lambda *given: nothing)
    with emulation.cupy.in_place_of_cupy():
        yield found


def update(model: ss.Ising) -> None:
    """Sweeps, copies of replicas and rounds of tempering, with measurements of all kinds."""
    for start in ("random", "up"):
        engine = ss.create_engine(model, 4, ss.Dynamics(start=start), "cuda")
        engine.set_beta(0.5)
        engine.sweep(2)
        engine.counts()
        engine.apply(SingleSpin("typewriter"), Moment(0.5, 0, 1))
    engine.copy_from(np.zeros((model.samples, 4), int))
    engine.set_ladder([0.5, 0.4], 2)
    engine.temper(1, 1)
    for move in (ss.Houdayer(), ss.SwendsenWang(), ss.SeededClusters()):
        engine.apply(move, Moment(np.array([0.5, 0.4]), 0, 1))
    for full in (False, True):
        wanted = Quantities(full, times=(1, 2), even=True) if model.graph.slices > 1 else Quantities(full)
        engine.temper_measured(
            2, 1, 1, wanted, engine.reduction(reduced_run(model, Choice(2, Quantities(full)), Ladder(2)))
        )
    if model.graph.slices > 1:
        engine.local_squares()


def alone(model: ss.Ising) -> None:
    """One replica at one temperature."""
    engine = ss.create_engine(model, 1, ss.Dynamics(), "cuda")
    engine.set_ladder([0.5], 1)
    engine.temper(1, 1)


def multiply() -> None:
    """Every product on arrays of the device."""
    import cupy

    def array(*shape: int):
        return cupy.ones(shape, np.float64)

    for kernel in rungs.RUNGS:
        ss.gemm.matmul(array(9, 290), array(290, 7), kernel=kernel)
    for side in special.BOTH:
        ss.gemm.both_factors(array(side, side), array(2, side, side), array(side, side))
    ss.gemm.left_factor(array(32, 32), array(32, 9))
    ss.gemm.right_factor(array(9, 32), array(32, 32))
    ss.gemm.tall_dot(array(100, 3), array(100, 20))
    ss.gemm.tall_matmul(array(100, 3), array(3, 20))
    for form in ("tiled", "naive"):
        ss.gemm.transpose(array(3, 5), kernel=form)


def test_arguments_have_the_names_of_parameters(launched: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """``Launch`` refuses others, so that it is enough to make every kernel ready once."""
    for model in MODELS:
        update(model)
    with monkeypatch.context() as patch:
        lattices = "spinsim.engine.moves.metropolis.replica_packed.cuda_lattices"
        patch.setattr(f"{lattices}.ReplicaLattices.are_spread", lambda *given: False)
        update(MODELS[0])
        patch.setattr(f"{lattices}.shared_memory", lambda device: 0)
        patch.setattr("spinsim.engine.moves.fortuin_kasteleyn.cuda.shared_memory", lambda device: 0)
        update(MODELS[0])
    with monkeypatch.context() as patch:
        patch.setattr("spinsim.engine.layouts.site_packed.MOST_REPLICAS", 4)
        few = ss.Ising(ss.square(32))
        update(few)
        alone(few)
        for module in ("cuda", "cuda_words"):
            patch.setattr(f"spinsim.engine.moves.metropolis.site_packed.{module}.fits_block", lambda *sizes: False)
        update(few)
        alone(few)
        patch.setattr("spinsim.engine.moves.metropolis.site_packed.cuda.fits_gpu", lambda *sizes: False)
        update(few)
        update(ss.Ising(ss.square(256, 4)))
    multiply()
    layer = Layer(ss.Ising(ss.chain(13)), 0, 0.4, 0.3, "even")
    CudaButterfly(layer)
    import cupy

    spins = cupy.ones((1, 2, 1, 16), np.int8)
    clusters.overlap_wrapping(Batch(spins, ("sample", "copy", "temperature", "site"), ss.Ising(ss.square(4)), cupy))
    fill_on_gpu(cupy.empty(9), 4, 1, 2, 3)
    CudaMix(cupy.empty((2, 2, 8)), 0.5, 0.5)
    lowest_of_chunks(0, *(np.zeros(shape, np.int32) for shape in ((8, 8), 8, 128, 1)))
    assert launched == {(file, expression.partition("<")[0]) for file, expression in instantiations()}


def test_other_names_are_refused(launched: Kernels) -> None:
    with pytest.raises(
        TypeError, match=r"gemm/transpose.cu: transpose_naive<float, 32, 8> takes a, b, size, not a, b$"
    ):
        Launch(0, "gemm/transpose.cu", "transpose_naive<float, 32, 8>", {"a": np.uint64(0), "b": np.uint64(0)})


def test_signatures_are_read_to_the_end() -> None:
    kernels = {(file, expression.partition("<")[0]) for file, expression in instantiations()}
    for file, name in kernels:
        assert all(parameter.isidentifier() for parameter in compiling.parameters(file, name))
    assert compiling.parameters("gemm/transpose.cu", "transpose_tiled<float, 32, 8>") == ("a", "b", "size")
    assert compiling.parameters("metropolis/site_packed.cu", "sweep_site")[-2:] == ("barriers", "key")


@pytest.mark.parametrize("file", programs())
def test_sources_are_filled_in(file: str) -> None:
    assert not re.search(r"HOST|CHECK_STRUCT", compiling.source(file))


def test_numbers_and_layouts_come_from_python() -> None:
    text = "a = HOST(rng.Stream.SWAP);\nCHECK_STRUCT(Key, cuda.launch.KEY);"
    number, sizes, _, offsets, _ = compiling.fill_in(text).splitlines()
    assert number == "a = 4;"
    assert sizes.startswith("static_assert(sizeof(Key) == 80 && sizeof(Key::low) == 40 && ")
    assert offsets.startswith(
        "static_assert(__builtin_offsetof(Key, low) == 0 && __builtin_offsetof(Key, high) == 40, "
    )
    for name in ("rng.Stream.NONE", "nowhere.NONE"):
        with pytest.raises(AttributeError):
            compiling.fill_in(f"HOST({name})")


@pytest.mark.parametrize("file", programs())
def test_structs_by_value_are_checked(file: str) -> None:
    """Every struct that a kernel takes has a layout in Python, which the compiler compares."""
    code = inlined(file)
    checked = {name.partition("<")[0] for name in re.findall(r"CHECK_STRUCT\(([^,]+),", code)}
    bare = re.sub(r"(?:__launch_bounds__|OF_CLUSTERS)\((?:[^()]|\([^()]*\))*\)", "", re.sub(r"//[^\n]*", "", code))
    for parameters in re.findall(r"__global__\s+void\s+\w+\(([^()]*)\)", bare):
        for parameter in re.split(r",(?![^<]*>)", parameters):
            kind = re.sub(r"^\s*(const )?(__grid_constant__ )?|\s*\w+\s*$", "", parameter)
            if kind == BARRIERS:
                assert {"LatticeBarrier", "NeighbourBarrier", "SlabBarrier"} <= checked
            elif kind == GEOMETRY:
                assert {"Slab", "AnyRows"} <= checked
            elif not kind.endswith("*") and kind not in NUMBERS:
                assert kind.partition("<")[0] in checked, parameter


def compiled(code: str) -> str:
    """What g++ says of a source behind the header of the emulation, nothing where it is right."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    command = ["g++", "-std=c++17", "-w", "-fsyntax-only", "-x", "c++", "-"]
    text = f'#include "{SHIM}"\n{translate(code)}'
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False).stderr


@pytest.mark.parametrize("file", WITH_LAYOUTS)
def test_offsets(file: str) -> None:
    """What NVRTC may not know, g++ compares."""
    assert not compiled(compiling.source(file))


def test_another_offset_is_seen() -> None:
    code = compiling.source("gemm/naive.cu")
    assert "Size is not laid out as" in compiled(code.replace("offsetof(Size, n) == 8", "offsetof(Size, n) == 16"))


def test_every_layout_is_compared() -> None:
    found = {file: set(re.findall(r"CHECK_STRUCT\(.+\);", inlined(file))) for file in programs()}
    assert set().union(*(found[file] for file in WITH_LAYOUTS)) == set().union(*found.values())


def inlined(file: str) -> str:
    """A kernel file and the headers that it includes, as they are written."""
    text = (KERNELS / file).read_text()
    return "".join(inlined(header) for header in re.findall(r'#include "(.+)"', text)) + text


def test_a_struct_takes_its_members_by_name() -> None:
    with pytest.raises(TypeError, match=r"a struct of low, high is given low$"):
        record(KEY, low=[1] * 10)


@pytest.mark.parametrize("file", SOURCES)
def test_files(file: str) -> None:
    """Named Python files exist, threads of a block are no number of their own, and the file is in the wheel."""
    text = (KERNELS / file).read_text()
    for named in re.findall(r"spinsim/[\w/]+\.py", text):
        assert (ROOT / named).is_file(), named
    assert not re.search(r"__launch_bounds__\(\d", text)
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert any(Path(file).match(pattern) for pattern in packaged["spinsim.kernels"])
