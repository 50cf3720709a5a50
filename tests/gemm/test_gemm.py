"""Matrix products: exact for integers, accurate for others, every element written, nothing read that should not be.

What needs no GPU runs through NumPy; a test with ``xp`` or ``gpu`` in it runs the kernels.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from products import CASES, POISON, TYPES, back, check_exact, placed, whole

import spinsim as ss
from spinsim.benchmark import gemm as bench_gemm
from spinsim.gemm import product as rungs
from spinsim.gemm import special
from spinsim.gemm.operands import Strides, strides

sizes = st.integers(1, 300)
gpu = pytest.mark.gpu


@gpu
@pytest.mark.parametrize(("kernel", "kind"), CASES)
def test_rungs_are_exact_for_integers_of_ragged_shapes(cp: Any, kernel: str, kind: str) -> None:
    flags = st.tuples(*(st.booleans(),) * 3)
    factors = st.tuples(st.sampled_from([1, 2, -3, 0]), st.sampled_from([0, 1, -2]))
    gaps = st.tuples(st.integers(0, 5), st.integers(0, 3))

    @settings(max_examples=60)
    @given(st.tuples(sizes, sizes, sizes), flags, factors, gaps)
    def check(shape: Any, flips: Any, factors: Any, gaps: Any) -> None:
        check_exact(cp, kernel, kind, shape, flips, factors, gaps)

    check()


@gpu
@pytest.mark.parametrize(("kernel", "kind"), CASES)
def test_rungs_at_edges_of_their_tiles(cp: Any, kernel: str, kind: str) -> None:
    m, n = rungs.RUNGS[kernel][kind].tile
    shapes = [(1, 1, 1), (m, n, 16), (m + 1, n - 1, 17), (2 * m, n, 1), (m - 1, 2 * n + 1, 64), (3, n, 0)]
    for shape, flips in product(shapes, product((False, True), repeat=2)):
        check_exact(cp, kernel, kind, shape, (*flips, False), (1, 0), (0, 0))
        check_exact(cp, kernel, kind, shape, (*flips, True), (-1, 2), (1, 1))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("flips", list(product((False, True), repeat=3)))
def test_products_of_transposed_and_partial_matrices(xp: Any, kind: str, flips: tuple[bool, bool, bool]) -> None:
    for shape, factors in product([(1, 1, 1), (5, 7, 3), (33, 18, 40), (4, 3, 0)], [(1, 0), (2, 0), (-1, 3), (0, 1)]):
        check_exact(xp, "auto", kind, shape, flips, factors, (3, 1))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("kernel", special.TRANSPOSING)
def test_transpose(xp: Any, kind: str, kernel: str) -> None:
    rng = np.random.default_rng(1)
    for shape, gap in product([(1, 1), (1, 300), (31, 33), (64, 32), (129, 257), (0, 3)], (0, 3)):
        x = rng.integers(-(2**30), 2**30, shape).astype(kind)
        out = placed(xp, np.zeros(shape[::-1], kind), False, gap)
        out[...] = POISON[kind]
        assert ss.gemm.transpose(placed(xp, x, False, gap, 1), out, kernel) is out
        np.testing.assert_array_equal(back(out), x.T)
        np.testing.assert_array_equal(back(ss.gemm.transpose(xp.asarray(x))), x.T)


@pytest.mark.parametrize("side", [32, 64, 128])
def test_small_factors_from_both_sides(xp: Any, side: int) -> None:
    rng = np.random.default_rng(side)
    factor = whole(rng, (side, side), "float64")
    for batch, width in [(1, 1), (1, 130), (3, 63), (2, 64), (5, 257)]:
        x = whole(rng, (batch, side, width), "float64")
        for transposed in (False, True):
            given = placed(xp, factor, transposed, 1)
            np.testing.assert_array_equal(back(ss.gemm.left_factor(given, xp.asarray(x))), factor @ x)
            np.testing.assert_array_equal(back(ss.gemm.left_factor(given, xp.asarray(x[0]))), factor @ x[0])
            tall = np.ascontiguousarray(x[0].T)
            out = xp.full(tall.shape, np.nan)
            assert ss.gemm.right_factor(xp.asarray(tall), given, out) is out
            np.testing.assert_array_equal(back(out), tall @ factor)
    in_place, exact = xp.array(x), factor @ x
    np.testing.assert_array_equal(back(ss.gemm.left_factor(xp.asarray(factor), in_place, in_place)), exact)


def test_factors_on_both_sides_of_tiles(xp: Any) -> None:
    rng = np.random.default_rng(7)
    left, right = whole(rng, (64, 64), "float64"), whole(rng, (64, 64), "float64")
    for tiles in (1, 2, 700):
        x = whole(rng, (tiles, 64, 64), "float64")
        exact = left @ x @ right
        given = xp.asarray(x)
        got = ss.gemm.both_factors(xp.asarray(left), given, xp.asarray(right.T.copy()).T, xp.full(x.shape, np.nan))
        np.testing.assert_array_equal(back(got), exact)
        np.testing.assert_array_equal(
            back(ss.gemm.both_factors(xp.asarray(left), given, xp.asarray(right), given)), exact
        )


@pytest.mark.parametrize(("p", "q"), [(1, 1), (16, 16), (5, 3), (17, 4), (4, 33), (64, 64), (64, 1), (48, 20)])
def test_tall_products(xp: Any, p: int, q: int) -> None:
    rng = np.random.default_rng([p, q])
    for rows, gap in product([1, 7, 64, 1000, 5003], (0, 1)):
        v, w = whole(rng, (rows, p), "float64"), whole(rng, (rows, q), "float64")
        y, c = whole(rng, (p, q), "float64"), whole(rng, (rows, q), "float64")
        given = placed(xp, v, False, gap), placed(xp, w, False, gap)
        nothing = xp.full((p, q), np.nan)
        np.testing.assert_array_equal(back(ss.gemm.tall_dot(*given, out=nothing)), v.T @ w)
        kept = ss.gemm.tall_dot(*given, alpha=-1, beta=2, out=xp.array(y))
        np.testing.assert_array_equal(back(kept), 2 * y - v.T @ w)
        out = placed(xp, np.zeros((rows, q)), False, gap)
        out[...] = np.nan
        np.testing.assert_array_equal(back(ss.gemm.tall_matmul(given[0], placed(xp, y, True), out=out)), v @ y)
        kept = ss.gemm.tall_matmul(given[0], xp.asarray(y), -1, 1, xp.array(c))
        np.testing.assert_array_equal(back(kept), c - v @ y)


@gpu
def test_tall_products_are_the_same_bits_every_time(cp: Any) -> None:
    rng = cp.random.default_rng(3)
    v, w = rng.standard_normal((1_000_003, 16)), rng.standard_normal((1_000_003, 20))
    first = back(ss.gemm.tall_dot(v, w))
    for _ in range(5):
        np.testing.assert_array_equal(back(ss.gemm.tall_dot(v, w)), first)
    exact = back(v).astype(np.longdouble).T @ back(w).astype(np.longdouble)
    assert np.abs(first - exact).max() <= 2 * np.abs(back(v.T @ w) - exact).max()


def test_no_rows_no_columns_and_no_depth(xp: Any) -> None:
    empty = xp.zeros((0, 3), np.float32)
    assert ss.gemm.matmul(empty, xp.zeros((3, 2), np.float32)).shape == (0, 2)
    out = xp.full((3, 3), 2, np.float32)
    np.testing.assert_array_equal(back(ss.gemm.matmul(empty.T, empty, beta=3, out=out)), np.full((3, 3), 6))
    assert back(ss.gemm.tall_dot(xp.zeros((0, 3)), xp.zeros((0, 2)))).tolist() == [[0, 0]] * 3


def test_factors_of_other_types() -> None:
    one = np.ones((2, 2))
    found = ss.gemm.matmul(one, one, alpha=np.float32(2), beta=np.int32(3), out=one + 1)
    np.testing.assert_array_equal(found, one * 10)


def test_auto_has_a_kernel_for_every_type_and_shape() -> None:
    for kind, m, n, parts in product(TYPES, (1, 300, 5000), (1, 300, 5000), (1, 8)):
        assert kind in rungs.RUNGS[rungs.best(kind, m, n, parts)]
    assert rungs.best("float32", 4096, 4096, 1) == "pipelined"
    assert rungs.best("float64", 4096, 4096, 1) == "tensorcore"


def test_bars_of_the_ladder(tmp_path: Path) -> None:
    rates = [
        bench_gemm.Rate(name, case, 0.001, 1e10, bench_gemm.asked(name, "float32", 1024), 0.5, None)
        for case, name in product(("float32 1024^3", "float32 2048^3"), ("naive", "block2d", "pipelined"))
    ]
    assert rates[0].moved > rates[1].moved > rates[2].moved
    assert rates[0].teraflops == pytest.approx(10)
    bench_gemm.draw(rates, tmp_path / "bars.png")
    assert (tmp_path / "bars.png").stat().st_size > 1000


def test_layouts() -> None:
    x = np.zeros((6, 8))
    assert strides("x", x) == Strides(6, 8, 8, 1)
    assert strides("x", x.T) == Strides(8, 6, 1, 8)
    assert strides("x", x[1:3, 2:5]) == Strides(2, 3, 8, 1)
    assert strides("x", x[:, :1]) == Strides(6, 1, 8, 1)
    assert strides("x", x[:1]) == Strides(1, 8, 8, 1)
    assert strides("x", x[:1, ::2]) == Strides(1, 4, 1, 2)
    assert strides("x", x[::2]) == Strides(3, 8, 16, 1)


F = np.ones((4, 4), np.float32)
D = np.ones((4, 4))
TALL = np.ones((100, 64))
BAD: list[tuple[str, Any, str]] = [
    ("list", lambda: ss.gemm.matmul([[1.0]], F), "a is a list: give a NumPy or CuPy array"),
    ("dimensions", lambda: ss.gemm.matmul(F[0], F), "a has shape (4,): give an array of 2 dimensions"),
    ("types", lambda: ss.gemm.matmul(F, D), "a is float32 but b is float64: convert one with astype"),
    ("half", lambda: ss.gemm.matmul(F.astype("f2"), F.astype("f2")), "takes float32 or float64 or int32, not float16"),
    ("shape", lambda: ss.gemm.matmul(F, F[:3]), "a has shape (4, 4) and b (3, 4): give b as many rows"),
    ("out shape", lambda: ss.gemm.matmul(F, F[:, :2], out=F[:, :3]), "out has shape (4, 3) but the product has (4, 2)"),
    ("overlap", lambda: ss.gemm.matmul(D[:2, :2], D[2:, 2:], out=D[1:3, 1:3]), "out overlaps a in memory"),
    ("out is b", lambda: ss.gemm.matmul(D, (b := D.copy()), out=b), "out overlaps b in memory"),
    ("kernel", lambda: ss.gemm.matmul(F, F, "fast"), "there is no kernel 'fast': give one of auto, naive"),
    ("kernel type", lambda: ss.gemm.matmul(F, F, "tensorcore"), "kernel tensorcore takes float64, not float32"),
    ("gaps", lambda: ss.gemm.matmul(F[:, ::2], F[:2]), "a has strides (16, 8) for float32"),
    ("backwards", lambda: ss.gemm.matmul(F[::-1], F), "a has strides (-16, 4)"),
    ("repeated", lambda: ss.gemm.matmul(np.broadcast_to(F[0], (4, 4)), F), "a has strides (0, 4)"),
    ("beta", lambda: ss.gemm.matmul(F, F, beta=1), "beta is 1 but there is no out"),
    ("alpha", lambda: ss.gemm.matmul(F.astype("i4"), F.astype("i4"), alpha=0.5), "alpha 0.5 is no 32-bit integer"),
    ("no number", lambda: ss.gemm.matmul(F.astype("i4"), F.astype("i4"), alpha=np.nan), "alpha nan is no 32-bit"),
    ("complex", lambda: ss.gemm.matmul(F, F, alpha=1j), "alpha = 1j has the wrong type: give a number"),
    ("huge", lambda: ss.gemm.matmul(F, F, alpha=10**400), "alpha is too large for a product of float"),
    ("large", lambda: ss.gemm.matmul(F.astype("f4"), F.astype("f4"), beta=-1e300), "beta is too large"),
    ("text", lambda: ss.gemm.transpose(F, kernel="fast"), "there is no kernel 'fast': give one of tiled, naive"),
    ("columns", lambda: ss.gemm.transpose(F.T), "a runs along its columns in memory"),
    ("factor", lambda: ss.gemm.left_factor(D, np.ones((5, 9))), "factor has shape (4, 4) but x needs (5, 5)"),
    ("side", lambda: ss.gemm.right_factor(np.ones((9, 4)), D), "factor has side 4: give a factor of side 32, 64, 128"),
    ("x gaps", lambda: ss.gemm.left_factor(np.eye(32), np.ones((32, 8))[:, :4]), "x has strides (64, 8)"),
    ("float32", lambda: ss.gemm.left_factor(F, F), "left_factor takes float64, not float32"),
    ("tiles", lambda: ss.gemm.both_factors(D, D, D), "x has shape (4, 4): give an array of 3 dimensions"),
    ("rows", lambda: ss.gemm.tall_dot(TALL, TALL[:50]), "v has shape (100, 64) and w (50, 64): give both as many rows"),
    ("wide", lambda: ss.gemm.tall_matmul(np.ones((3, 65)), np.ones((65, 2))), "v has 65 columns: give at most 64"),
    ("tall out", lambda: ss.gemm.tall_matmul(TALL, np.eye(64), out=TALL), "out overlaps v in memory"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_arguments_are_one_clear_sentence(call: Any, words: str) -> None:
    with pytest.raises(ss.InputError) as refused:
        call()
    sentence = str(refused.value)
    assert words in sentence
    assert "\n" not in sentence


@gpu
def test_bad_arguments_on_a_gpu(cp: Any) -> None:
    a = cp.ones((4, 4))
    with pytest.raises(ss.InputError, match="a is a CuPy array but b is a NumPy array: copy one"):
        ss.gemm.matmul(a, D)
    with pytest.raises(ss.InputError, match="out overlaps a in memory"):
        ss.gemm.matmul(a[:2, :2], cp.ones((2, 2)), out=a[1:3, 1:3])
    ss.gemm.matmul(a[:2, :2], cp.ones((2, 2)), out=a[:2, 2:])  # beside each other
    assert back(a).tolist() == [[1, 1, 2, 2]] * 2 + [[1] * 4] * 2
