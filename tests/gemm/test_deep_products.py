"""Products whose depth k is cut into parts: exact, as accurate as cuBLAS's, the same bits by every rung; two GPUs."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import CASES, TYPES, Array, back, check_exact, placed, whole

import spinsim as ss
from spinsim.gemm import product as splitting

gpu = pytest.mark.gpu
# m, k, n: where all is one part, where it is many, and where these are long
SHAPES = [
    (2050, 300, 2040),
    (2050, 2001, 2040),
    (48, 3001, 40),
    (300, 20_000, 260),
    (5, 100_000, 130),
    (1500, 50_000, 1500),
    (999, 50_000, 999),
]
OF_FLOATS = [(kernel, kind) for kernel, kind in CASES if kind != "int32"]


@given(st.sampled_from(TYPES), st.integers(1, 40_000), st.integers(1, 40_000), st.integers(0, 2_000_000))
def test_parts_make_up_the_depth(kind: str, m: int, n: int, k: int) -> None:
    """No part is empty, short or very long, and all parts of C together take little room."""
    count = splitting.parts(kind, m, n, k)
    length = splitting.STEP * -(-k // (splitting.STEP * count))  # as gemm/gemm.cuh has it
    assert (count - 1) * length < max(k, 1) <= max(count * length, 1)
    assert count == splitting.parts(kind, n, m, k)
    room = count * m * n * np.dtype(kind).itemsize
    if count > 1:
        assert count <= splitting.MOST
        assert length >= splitting.SHORTEST
        assert room <= splitting.ROOM
    assert length <= splitting.LONGEST or room > splitting.ROOM / 4 or count > splitting.MOST * 3 / 4


def test_parts_of_some_products() -> None:
    """They are the same on every GPU; another number changes results in their last bits."""
    assert splitting.parts("float32", 48, 40, 3001) == 94
    assert splitting.parts("float32", 1000, 1000, 1000) == 4
    assert splitting.parts("float32", 4096, 4096, 4096) == 1
    assert splitting.parts("float32", 4096, 4096, 20_000) == 4
    assert splitting.parts("float64", 1000, 1000, 1000) == 2
    assert splitting.parts("float64", 1600, 1600, 1600) == 3
    assert splitting.parts("float64", 64, 64, 40) == 1
    assert splitting.parts("float64", 8192, 8192, 8192) == 1
    assert splitting.parts("int32", 7, 3, 0) == 1


@gpu
@pytest.mark.parametrize(("kernel", "kind"), CASES)
def test_deep_products_are_exact_for_integers(cp: Any, kernel: str, kind: str) -> None:
    sizes, flags = st.integers(1, 150), st.tuples(*(st.booleans(),) * 3)
    factors = st.tuples(st.sampled_from([1, 2, -3, 0]), st.sampled_from([0, 1, -2]))
    gaps = st.tuples(st.integers(0, 5), st.integers(0, 3))

    @settings(max_examples=30)
    @given(st.tuples(sizes, sizes, st.integers(64, 9000)), flags, factors, gaps)
    def check(shape: Any, flips: Any, factors: Any, gaps: Any) -> None:
        check_exact(cp, kernel, kind, shape, flips, factors, gaps)

    check()
    check_exact(cp, kernel, kind, (131, 7, 100_003), (True, False, False), (1, 0), (1, 1))


@cache
def drawn(kind: str, shape: tuple[int, int, int]) -> tuple[Array, Array]:
    m, k, n = shape
    rng = np.random.default_rng(shape)
    return rng.standard_normal((m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)


@cache
def reference(kind: str, shape: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    """Rows, columns and elements there, twice as precise as float64: products split exactly, added by ``fsum``."""

    def halves(x: Array) -> tuple[Array, Array]:
        high = x * 134217729.0  # 2^27 + 1
        high = high - (high - x)
        return high, x - high

    a, b = drawn(kind, shape)
    rng, most = np.random.default_rng(1), 24 if shape[1] < 10_000 else 8
    rows, columns = (rng.choice(size, min(size, most), replace=False) for size in (shape[0], shape[2]))
    left, right = halves(a[rows].astype(np.float64)), halves(b[:, columns].astype(np.float64))
    sums = np.empty((rows.size, columns.size))
    for i, j in np.ndindex(sums.shape):
        sums[i, j] = math.fsum(np.concatenate([x[i] * y[:, j] for x, y in product(left, right)]))
    return rows, columns, sums


@gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kernel", "kind"), OF_FLOATS)
def test_errors_are_at_most_twice_those_of_cublas(cp: Any, kernel: str, kind: str, shape: tuple[int, int, int]) -> None:
    rows, columns, exact = reference(kind, shape)
    a, b = (cp.asarray(x) for x in drawn(kind, shape))
    ours, theirs = ss.gemm.matmul(a, b, kernel), a @ b
    error, bound = (np.linalg.norm(back(x)[np.ix_(rows, columns)] - exact) for x in (ours, theirs))
    assert 0 < error <= 2 * bound


@gpu
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(48, 3001, 40), (200, 5000, 300), (500, 40_000, 700)])
def test_bits_do_not_depend_on_rung_layout_and_neighbours(cp: Any, kind: str, shape: tuple[int, int, int]) -> None:
    a, b = drawn(kind, shape)
    plain = cp.asarray(a), cp.asarray(b)
    every = {name: back(ss.gemm.matmul(*plain, name)) for name, of in CASES if of == kind and name != "tensorcore"}
    for found in every.values():
        np.testing.assert_array_equal(found, every["naive"])
    for name in ("auto", "pipelined"):
        expected = back(ss.gemm.matmul(*plain, name))
        for flips in product((False, True), repeat=3):
            out = placed(cp, np.zeros(expected.shape, kind), flips[2], 3, 1)
            out[...] = cp.nan
            ss.gemm.matmul(placed(cp, a, flips[0], 1), placed(cp, b, flips[1], 0, 1), name, out=out)
            np.testing.assert_array_equal(back(out), expected)


@gpu
def test_arrays_on_a_gpu_that_is_not_the_current_one(cp: Any) -> None:
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    rng = np.random.default_rng(2)

    def there(x: Array, device: int = 1) -> Any:
        with cp.cuda.Device(device):
            return cp.asarray(x)

    def check(found: Any, exact: Array) -> None:
        assert found.device.id == 1
        assert cp.cuda.runtime.getDevice() == 0
        np.testing.assert_array_equal(back(found), exact)

    for (kernel, kind), (m, n, k) in product(CASES, [(130, 70, 50), (70, 50, 4000)]):
        a, b = whole(rng, (m, k), kind), whole(rng, (k, n), kind)
        check(ss.gemm.matmul(there(a), there(b), kernel), a.astype(np.int64) @ b.astype(np.int64))
    x, factor = whole(rng, (300, 64, 64), "float64"), whole(rng, (64, 64), "float64")
    tall, small = x.reshape(-1, 64), there(factor)
    check(ss.gemm.left_factor(small, there(x)), factor @ x)
    check(ss.gemm.right_factor(there(tall), small), tall @ factor)
    check(ss.gemm.both_factors(small, there(x), small), factor @ x @ factor)
    check(ss.gemm.tall_dot(there(tall), there(tall)), tall.T @ tall)
    check(ss.gemm.tall_matmul(there(tall), small), tall @ factor)
    check(ss.gemm.transpose(there(tall)), tall.T)
    here = there(factor, 0)
    with pytest.raises(ss.InputError, match="a is on GPU 0 but b on GPU 1: copy one to the other's"):
        ss.gemm.matmul(here, small)
    with pytest.raises(ss.InputError, match="a is on GPU 1 but out on GPU 0: copy one to the other's"):
        ss.gemm.matmul(small, small, out=here)
    with pytest.raises(ss.InputError, match="v is on GPU 1 but w on GPU 0: copy one to the other's"):
        ss.gemm.tall_dot(small, here)
