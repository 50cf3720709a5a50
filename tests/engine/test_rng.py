"""Philox against its published vectors, the split form against the plain one, and the counter's bit budget."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinsim import rng
from spinsim.errors import InputError

U = np.uint64
ONES = 0xFFFFFFFF
PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)

# Random123's known answers: (rounds, counter and key, result)
KNOWN = [
    (7, (0,) * 6, (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)),
    (7, (ONES,) * 6, (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662)),
    (7, PI, (0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A)),
    (10, (0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (10, (ONES,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (10, PI, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
word = st.integers(0, ONES).map(U)


@pytest.mark.parametrize(("rounds", "words", "expected"), KNOWN)
def test_published_vectors(rounds: int, words: tuple[int, ...], expected: tuple[int, ...]) -> None:
    got = rng.philox(*(U(w) for w in words), rounds)
    assert tuple(int(rng.low32(w)) for w in got) == expected
    assert tuple(int(w) for w in oracle.philox(words[:4], words[4:], rounds)) == expected


@given(st.tuples(word, word, word, word, word, word), st.sampled_from([7, 10]))
def test_prefix_and_finish_equal_philox(words: tuple[np.uint64, ...], rounds: int) -> None:
    c0, c1, c2, c3, k0, k1 = words
    whole = rng.philox(*words, rounds)
    split = rng.philox_finish(*rng.philox_prefix(c0, c1, c2, k0, k1), c3, k0, k1, rounds)
    assert [rng.low32(w) for w in whole] == [rng.low32(w) for w in split]


@given(
    st.integers(0, 2**rng.SAMPLE_BITS - 1),
    st.integers(0, 2**rng.BLOCK_BITS - 1),
    st.integers(0, 2**rng.HALF_SWEEP_BITS - 1),
    st.integers(0, 2**rng.STREAM_BITS - 1),
    st.integers(0, 2**rng.PLANE_BITS - 1),
)
def test_counter_fields_do_not_overlap(sample: int, block: int, half_sweep: int, stream: int, plane: int) -> None:
    word1 = int(rng.counter_block(U(sample), U(block)))
    word2 = int(rng.low32(U(half_sweep)))
    word3 = int(rng.counter_plane(U(half_sweep), U(stream), U(plane)))
    assert max(word1, word2, word3) <= ONES
    assert (word1 >> rng.BLOCK_BITS, word1 % 2**rng.BLOCK_BITS) == (sample, block)
    assert ((word3 >> 16) << 32 | word2, word3 >> 8 & 0xFF, word3 & 0xFF) == (half_sweep, stream, plane)


def test_streams_fit_their_field_and_differ() -> None:
    assert len({int(s) for s in rng.Stream}) == len(rng.Stream)
    assert all(0 < s < 2**rng.STREAM_BITS for s in rng.Stream)


def test_draws_of_different_seeds_samples_blocks_and_streams_differ() -> None:
    group = np.arange(64)
    draws = [
        rng.draw(1, rng.Stream.UPDATE, group=group),
        rng.draw(2, rng.Stream.UPDATE, group=group),
        rng.draw(2**32 + 1, rng.Stream.UPDATE, group=group),
        rng.draw(1, rng.Stream.START, group=group),
        rng.draw(1, rng.Stream.UPDATE, group=group, sample=1),
        rng.draw(1, rng.Stream.UPDATE, group=group, block=1),
        rng.draw(1, rng.Stream.UPDATE, group=group, half_sweep=1),
        rng.draw(1, rng.Stream.UPDATE, group=group, half_sweep=2**32),
        rng.draw(1, rng.Stream.UPDATE, group=group, plane=1),
        rng.draw(1, rng.Stream.UPDATE, group=group, rounds=7),
    ]
    assert len({d.tobytes() for d in draws}) == len(draws)


def test_a_run_past_the_counter_is_refused() -> None:
    fine = {"groups": 2**32, "samples": 2**18, "blocks": 2**14, "half_sweeps": 2**48}
    rng.check_budget(**fine)
    for name in fine:
        with pytest.raises(InputError, match="exceed the random counter's limit"):
            rng.check_budget(**{**fine, name: fine[name] + 1})
