"""Numba kernels of the transfer matrix: butterflies in cache, and products with a few long vectors.

A vector of 2^bits amplitudes is a table of 2^(bits - low) rows of 2^low. The first pass takes rows, which lie in one
piece and fit the second-level cache; the second takes narrow columns of all rows. Sums go block by block, whatever the
threads.
"""

from __future__ import annotations

from spinsim.machine.compiled import part, real_kernel


@part
def _pair(y, first, distance, width, q):  # type: ignore[no-untyped-def]
    """One factor [[1, q], [q, 1]] on ``width`` neighbouring pairs."""
    for j in range(first, first + width):
        a, b = y[j], y[j + distance]
        y[j] = a + q * b
        y[j + distance] = b + q * a


@part
def _quadruple(y, first, distance, width, q):  # type: ignore[no-untyped-def]
    """Two factors, of distances d and 2 d."""
    for j in range(first, first + width):
        a, b, c, d = y[j], y[j + distance], y[j + 2 * distance], y[j + 3 * distance]
        e, f, g, h = a + q * b, b + q * a, c + q * d, d + q * c
        y[j] = e + q * g
        y[j + distance] = f + q * h
        y[j + 2 * distance] = g + q * e
        y[j + 3 * distance] = h + q * f


@part
def _octuple(y, first, q):  # type: ignore[no-untyped-def]
    """Three factors on eight neighbours."""
    for j in range(first, first + 8, 2):
        a, b = y[j], y[j + 1]
        y[j], y[j + 1] = a + q * b, b + q * a
    _quadruple(y, first, 2, 2, q)


@real_kernel
def rows(x, diagonal, y, low, q, flip, both, first, last):  # type: ignore[no-untyped-def]
    """Diagonal, the flip of all spins and the lowest ``low`` factors, on rows from ``first`` to ``last``.

    ``flip`` is its factor, 0 where there is none; ``both`` says that the diagonal comes again at the end.
    """
    size = 1 << low
    for row in range(first, last):
        begin, end = row * size, (row + 1) * size
        if flip != 0.0:
            top = x.size - 1
            for i in range(begin, end):
                y[i] = diagonal[i] * x[i] + flip * (diagonal[top - i] * x[top - i])
        else:
            for i in range(begin, end):
                y[i] = diagonal[i] * x[i]
        bit = 0
        if low >= 3:
            for i in range(begin, end, 8):
                _octuple(y, i, q)
            bit = 3
        while bit + 1 < low:
            for i in range(begin, end, 4 << bit):
                _quadruple(y, i, 1 << bit, 1 << bit, q)
            bit += 2
        if bit < low:
            for i in range(begin, end, 2 << bit):
                _pair(y, i, 1 << bit, 1 << bit, q)
        if both:
            for i in range(begin, end):
                y[i] *= diagonal[i]


@real_kernel
def columns(diagonal, y, low, bits, width, q, first, last):  # type: ignore[no-untyped-def]
    """The factors from ``low`` on and the diagonal, in place, on columns of ``width`` from ``first`` to ``last``."""
    for column in range(first, last):
        begin = column * width
        bit = low
        while bit + 1 < bits:
            step = 1 << bit
            for high in range(0, 1 << bits, 4 << bit):
                for row in range(0, step, 1 << low):
                    _quadruple(y, begin + high + row, step, width, q)
            bit += 2
        if bit < bits:
            step = 1 << bit
            for high in range(0, 1 << bits, 2 << bit):
                for row in range(0, step, 1 << low):
                    _pair(y, begin + high + row, step, width, q)
        for row in range(0, 1 << bits, 1 << low):
            for i in range(begin + row, begin + row + width):
                y[i] *= diagonal[i]


@real_kernel
def project(basis, w, size, first, last, out):  # type: ignore[no-untyped-def]
    """out[block, j] = sum over a block of ``size`` amplitudes of basis[j] w; blocks from ``first`` to ``last``."""
    for block in range(first, last):
        begin, end = block * size, min((block + 1) * size, w.size)
        part = w[begin:end]
        for j in range(len(basis)):
            row, total = basis[j, begin:end], 0.0
            for i in range(part.size):
                total += row[i] * part[i]
            out[block, j] = total


@real_kernel
def subtract(basis, factors, w, size, first, last):  # type: ignore[no-untyped-def]
    """W minus the sum of factors[j] basis[j], in place; four rows at a time, as w would else be stored too often."""
    for block in range(first, last):
        begin, end = block * size, min((block + 1) * size, w.size)
        part = w[begin:end]
        j = 0
        while j + 4 <= len(basis):
            a, b, c, d = basis[j, begin:end], basis[j + 1, begin:end], basis[j + 2, begin:end], basis[j + 3, begin:end]
            for i in range(part.size):
                part[i] -= factors[j] * a[i] + factors[j + 1] * b[i] + factors[j + 2] * c[i] + factors[j + 3] * d[i]
            j += 4
        while j < len(basis):
            row, factor = basis[j, begin:end], factors[j]
            for i in range(part.size):
                part[i] -= factor * row[i]
            j += 1
