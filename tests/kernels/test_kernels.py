"""Every kernel instance compiles for every architecture, within its recorded registers and spills.

A file that is as it was when its ceilings were recorded, by the same compiler, is not compiled again.

Where a ceiling is to change on purpose: ``python tests/support/resources.py --record``, and look at the difference.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from places import ROOT
from resources import (
    ARCHITECTURES,
    CEILINGS,
    Resources,
    digest,
    instantiations,
    measure,
    measure_all,
    nvrtc_version,
    programs,
    why_not,
)

KERNELS = ROOT / "kernels"
Measured = dict[tuple[str, str], Future[dict[str, Resources]]]

SMALLEST = "metropolis/start.cu"
SPILLING = """
template <int N> __global__ __launch_bounds__(1024, 2) void reverse(float* x) {
    float kept[N];
#pragma unroll
    for (int i = 0; i < N; ++i) kept[i] = x[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = kept[N - 1 - i];
}
"""


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """Registers and spills, ``recorded[file][expression][architecture]``, ``recorded["nvrtc"]`` and ``"digests"``."""
    return tomllib.loads(CEILINGS.read_text())


@pytest.fixture(scope="module")
def compiler() -> str:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    return nvrtc_version()


@pytest.fixture(scope="module")
def measured(compiler: str, recorded: dict[str, Any]) -> Iterator[Measured]:
    """Of the files that have changed, or of all where the compiler has; the smallest file is always among them."""
    same = recorded["digests"] if compiler == recorded["nvrtc"] else {}
    pool = ThreadPoolExecutor(os.cpu_count())
    yield measure_all(pool, [file for file in programs() if file == SMALLEST or digest(file) != same.get(file)])
    pool.shutdown(cancel_futures=True)


def test_every_kernel_is_listed() -> None:
    written = set()
    for path in KERNELS.rglob("*.cu"):
        text = re.sub(r"(?:__launch_bounds__|OF_CLUSTERS)\((?:[^()]|\([^()]*\))*\)", "", path.read_text())
        file = path.relative_to(KERNELS).as_posix()
        written |= {(file, name) for name in re.findall(r"__global__\s+void\s+(\w+)", text)}
    assert written == {(file, expression.split("<")[0]) for file, expression in instantiations()}


def test_every_instance_has_a_ceiling(recorded: dict[str, Any]) -> None:
    names = {(file, name) for file in recorded.keys() - {"nvrtc", "digests"} for name in recorded[file]}
    assert names == set(instantiations()), "record the ceilings again: python tests/support/resources.py --record"


@pytest.mark.parametrize(("file", "architecture"), list(product(programs(), ARCHITECTURES)))
def test_no_more_registers_and_spills(
    measured: Measured, recorded: dict[str, Any], compiler: str, file: str, architecture: str
) -> None:
    if (file, architecture) not in measured:
        return  # its digest is the one of the ceilings
    wrong = []
    for name, used in measured[file, architecture].result().items():
        registers, spills = recorded.get(file, {}).get(name, {}).get(architecture, (0, 0))
        if used.registers > registers:
            wrong.append(f"{name}: {used.registers} registers, ceiling {registers}")
        if used.spills > spills:
            wrong.append(f"{name}: {used.spills} bytes of spills, ceiling {spills}")
    versions = f"NVRTC {compiler}, ceilings recorded with {recorded['nvrtc']}"
    assert not wrong, "\n".join([f"{file} for {architecture} ({versions})", *wrong])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_spills_are_seen(compiler: str, architecture: str) -> None:
    used = measure(SPILLING, ["reverse<100>", "reverse<4>"], architecture)
    assert used["reverse<100>"].spill_stores > 0
    assert used["reverse<100>"].spill_loads > 0
    assert used["reverse<100>"].stack > 0
    assert used["reverse<4>"][1:] == (0, 0, 0, 0)
