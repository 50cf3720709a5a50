"""Counts of the sites or bonds at which site-packed replicas differ, on a CPU, and the modes derived from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np

from spinsim.engine.layouts.replica_packed import ONE, ZERO
from spinsim.engine.layouts.site_packed import ALL, WORD, Seams, Words, bits_at, count_lattice, lanes_of, window_of
from spinsim.engine.measuring.correlations import waves
from spinsim.engine.measuring.cpu import Compared, Integers
from spinsim.engine.moves.metropolis.steps import WIDE_WORDS
from spinsim.machine.compiled import kernel, part
from spinsim.machine.intrinsics import set_bits
from spinsim.model.lattice import Lattice

PLANES: Final = 32  # bits of a count of rows


@part
def set_in_layers(lattice, sides, planes, along):  # type: ignore[no-untyped-def]
    """Set ``along`` (axes, layers) to the number of set bits in each layer of a ``lattice`` (colours, words).

    Rows of equal parity hold the same x. Their words are added up as bit-sliced numbers, one bit in each of ``planes``.
    """
    # planes[p], a word: bit b is bit p of the number of rows in which the spin of lane i + b is set
    #
    #     rows of a colour with (y + z) % 2 == parity hold lane i at x = 2 i + (parity + colour) % 2
    #
    # So a word per row is added to 64 counters at once, and the x axis needs no bit-by-bit loop over rows.
    width, height, depth = sides
    for axis in range(along.shape[0]):
        for layer in range(along.shape[1]):
            along[axis, layer] = 0
    for i in range(0, width, WORD):
        lanes = min(WORD, width - i)
        used = ALL >> np.uint64(WORD - lanes)
        for colour in range(2):
            for parity in range(2):
                in_use = 0
                for z in range(depth):
                    for y in range((z + parity) % 2, height, 2):
                        word = bits_at(lattice[colour], (y + height * z) * width + i) & used
                        # The y and z axes have whole rows in a layer: count bits of the word.
                        count = np.int64(set_bits(word))
                        along[1, y] += count
                        if depth > 1:
                            along[2, z] += count
                        # A ripple counter: XOR is the new bit, AND the carry, until no lane carries.
                        for p in range(in_use):
                            carry = planes[p] & word
                            planes[p] ^= word
                            word = carry
                            if not word:
                                break
                        # A carry out of the highest plane opens one more.
                        if word:
                            planes[in_use] = word
                            in_use += 1
                # Read the counters, lane by lane.
                for b in range(lanes):
                    rows = np.int64(0)
                    for p in range(in_use):
                        rows += np.int64(planes[p] >> np.uint64(b) & ONE) << p
                    along[0, 2 * (i + b) + (parity + colour) % 2] += rows


@part
def squared_mode(along, layers, size, wave):  # type: ignore[no-untyped-def]
    """Return |sum over x of v_x exp(i k x)|^2, with v_x = size - 2 along[x] added up in the order of x.

    IEEE operations are not fused, so that a GPU gets the same bits.
    """
    real, imaginary = 0.0, 0.0
    for x in range(layers):
        value = np.float64(size - 2 * along[x])
        real += value * wave[0, x]
        imaginary += value * wave[1, x]
    return real * real + imaginary * imaginary


@kernel
def compare_lattices(  # type: ignore[no-untyped-def]
    sides, seams, layers, wave, state, holder, overlap, link_overlap, modes, begin, end
):
    """Compare copies at equal temperatures of samples from ``begin`` to before ``end``, as ``Compared`` describes.

    Args:
        layers: Number of layers along each axis, (axes,).
        wave: Cosine and sine of each axis at its layers, (axes, 2, most layers).
        state: State of these samples, (samples, replicas, colours, words).
        holder: Replicas at each temperature, (all samples, copies, temperatures).
    """
    copies, temperatures = holder.shape[1:]
    pairs, in_modes, words = overlap.shape[1], modes.shape[2] if modes.shape[0] else 0, state.shape[3]
    _, layer, lanes = lanes_of(sides)
    lattice, planes = np.empty((2, words), np.uint64), np.empty(PLANES, np.uint64)
    w, room, signs = np.empty(WIDE_WORDS, np.uint64), window_of(sides, words // 2), np.empty((2, 0, 0), np.uint64)
    along = np.empty((layers.size, wave.shape[2]), np.int64)
    for sample in range(begin, end):
        of_sample, pair = state[sample - begin], 0
        for one in range(copies):
            for other in range(one + 1, copies if pairs else 0):
                for t in range(temperatures):
                    a, b, differing = of_sample[holder[sample, one, t]], of_sample[holder[sample, other, t]], ZERO
                    for colour in range(2):
                        for k in range(words):
                            # A bit is 1 where the copies differ.
                            lattice[colour, k] = a[colour, k] ^ b[colour, k]
                            differing += set_bits(lattice[colour, k])
                    overlap[sample, pair, t] = 2 * lanes - 2 * np.int64(differing)
                    if link_overlap.shape[1]:
                        # A bond counts -1 if its ends differ in ``lattice``: it is then unsatisfied without signs.
                        halo = (lattice, lattice, lanes - layer)
                        _, bonds, _ = count_lattice(w, room, lattice, halo, sides, seams, signs, 0, 1)
                        link_overlap[sample, pair, t] = 2 * lanes * layers.size - 2 * bonds
                    if in_modes:
                        set_in_layers(lattice, sides, planes, along)
                        for axis in range(layers.size):
                            size = 2 * lanes // layers[axis]
                            modes[axis, sample, pair, t] = squared_mode(along[axis], layers[axis], size, wave[axis])
                pair += 1
        for copy in range(copies if in_modes > pairs else 0):
            for t in range(temperatures):
                set_in_layers(of_sample[holder[sample, copy, t]], sides, planes, along)
                for axis in range(layers.size):
                    size = 2 * lanes // layers[axis]
                    mode = squared_mode(along[axis], layers[axis], size, wave[axis])
                    modes[axis, sample, pairs + copy, t] = mode


class CpuLatticeComparison:
    """Comparison of copies at equal temperatures, by site-packed words; arguments are as in sweeps."""

    def __init__(self, lattice: Lattice, sides: tuple[int, int, int], seams: Seams) -> None:
        self._lattice, self._sides, self._seams = lattice, sides, seams

    @cached_property
    def _kernel(self) -> Callable[..., None]:
        of_axes = waves(self._lattice)
        wave = np.zeros((len(of_axes), 2, max(self._lattice.shape)))
        for axis, one in enumerate(of_axes):
            wave[axis, :, : one.shape[1]] = one
        kernel: Callable[..., None] = compare_lattices.given(
            self._sides, self._seams, np.array(self._lattice.shape, np.int64), wave
        )
        return kernel

    def compare(self, words: Words, holder: Integers, results: Compared, samples: slice) -> None:
        """Fill the ``results`` of some samples; ``holder`` is (all samples, copies, temperatures)."""
        state = words.reshape(*words.shape[:3], -1)
        self._kernel(state, holder, *results, samples.start, samples.stop)
