"""Tables that kernels of replica-packed spins read: places in memory, sites with neighbours, groups of bonds."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.compile import FLAGS, PHILOX_ROUNDS, Instances, instance
from spinsim.cuda.launch import ADDRESS, SIZE, struct_type
from spinsim.engine.layouts.replica_packed.cuda_words import places
from spinsim.engine.moves.metropolis.packed.batches import Batches
from spinsim.engine.moves.metropolis.packed.classes import MAX_DEGREE_IN_FIELD, Kind

PLACE: Final = 16  # bytes of one place
TAIL_ROOM: Final = 64  # groups that a warp's queue of undecided lanes holds
TAIL_WORDS: Final = 11  # of such a group, besides those of its classes
CLASS_BIT_WORDS: Final = 4  # of each bit of its classes
GROUPED: Final = 3  # bonds of one word of ``bond_groups``
PLACE_BITS: Final = 15  # of each place there
SLOTS: Final = 7  # at most, in a record of eight words whose first is the site
GLOBAL_THREADS: Final = 128  # of a thread block of a lattice in global memory
HELD_BYTES: Final = 5600  # of a sample's ladder in shared memory, at most
TALLY_BYTES: Final = 84  # of a thread that counts bonds while it updates
TALLIED_GROUPS: Final = 18  # that such a thread updates, at most

BATCH: Final = struct_type(**dict.fromkeys(("first", "size", "slots", "base", "parity", "offset"), np.uint32))
MODEL: Final = struct_type(
    order=ADDRESS,
    neighbour=ADDRESS,
    signs=ADDRESS,
    sign_stride=SIZE,
    near=ADDRESS,
    negative=ADDRESS,
    negative_stride=SIZE,
)
TABLES: Final = struct_type(always=ADDRESS, planes=ADDRESS, thresholds=ADDRESS, lanes=ADDRESS, stride=SIZE)
BONDS: Final = struct_type(groups=ADDRESS, stride=SIZE, count=SIZE)
LANE_SUMS: Final = struct_type(up=ADDRESS, unsatisfied=ADDRESS, up_first=ADDRESS)
ROUND_TOTALS: Final = struct_type(rows=ADDRESS, first=np.uint32)
NOTES: Final = struct_type(to=ADDRESS, copies=ADDRESS, every=SIZE)


def site_records(batches: Batches) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """For each place its site and the places of its neighbours in bytes, (sites, 8), and signs as bytes 0 or 255.

    Signs have the shape (1 or samples, sites, 8).

    Only for batches of at most seven slots.
    """
    place = places(batches)
    near = np.zeros((batches.order.size, 1 + SLOTS), np.uint32)
    negative = np.zeros((len(batches.signs), batches.order.size, 1 + SLOTS), np.uint8)
    near[:, 0] = batches.order
    for b, slots in enumerate(batches.slots):
        sites = slice(batches.first[b], batches.first[b + 1])
        size = sites.stop - sites.start
        flat = slice(batches.offset[b], batches.offset[b] + slots * size)
        near[sites, 1 : 1 + slots] = PLACE * place[batches.neighbour[flat]].reshape(slots, size).T
        signs = batches.signs[:, flat].reshape(-1, slots, size)
        negative[:, sites, :slots] = 255 * signs.transpose(0, 2, 1)
    return near, negative


def bond_groups(ends: npt.NDArray[np.integer[Any]], negative: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Words of the bonds of one place with up to three others, (1 or samples, groups).

    Args:
        ends: Places of each bond's ends, (bonds, 2), below 2^15.
        negative: Which couplings are below 0, (1 or samples, bonds).
    """
    low, high = ends.min(axis=1), ends.max(axis=1)
    by_place = np.lexsort((high, low))
    low, high, negative = low[by_place], high[by_place], negative[:, by_place]
    number = np.arange(low.size) - np.searchsorted(low, low)  # among the bonds of the same lower end
    opens = number % GROUPED == 0
    group, slot = np.cumsum(opens) - 1, number % GROUPED
    own = low[opens].astype(np.uint64)
    others, signs = np.tile(own, (GROUPED, 1)), np.zeros((len(negative), GROUPED, own.size), np.uint64)
    others[slot, group], signs[:, slot, group] = high, negative
    word = own
    for k in range(GROUPED):
        word = word | others[k] << np.uint64(PLACE_BITS * (k + 1))
    shift = np.arange(PLACE_BITS * (GROUPED + 1), 64, dtype=np.uint64)[:GROUPED, None]
    in_turn = np.lexsort((own, number[opens]))  # threads side by side then read words side by side
    return np.ascontiguousarray((word + (signs << shift).sum(axis=1, dtype=np.uint64))[:, in_turn])


def batch_table(batches: Batches) -> npt.NDArray[np.uint32]:
    """The words of a ``BATCH`` for each batch."""
    table = np.empty(len(batches.slots), BATCH)
    table["first"], table["size"] = batches.first[:-1], np.diff(batches.first)
    for name in ("slots", "base", "parity", "offset"):
        table[name] = getattr(batches, name)
    return table.view(np.uint32)


def tail_bytes(class_bits: int) -> int:
    """Size of a warp's queue of undecided lanes."""
    return 4 * TAIL_ROOM * (TAIL_WORDS + CLASS_BIT_WORDS * class_bits)


# (slots, count bits, field, kind): a fixed number of slots, of three count bits, or 0 for any number
RULES: Final = (
    *product((0,), range(3, MAX_DEGREE_IN_FIELD.bit_length() + 1), FLAGS, (int(Kind.ANY),)),
    *((slots, 3, field, int(Kind.ANY)) for slots, field in product((4, 6, 7), FLAGS)),
    *((slots, 3, "false", int(Kind.PLAIN)) for slots in (4, 6, 7)),
    *((slots, 3, "false", int(kind)) for slots, kind in product((4, 6), (Kind.WARM, Kind.COLD))),
)
UPDATES: Final = (
    ("metropolis/replica_packed.cu", "sweep_replica"),
    ("metropolis/replica_packed_shared.cu", "sweep_shared"),
    ("tempering/temper_shared.cu", "temper_shared"),
)
COUNTED_RULES: Final = tuple(
    rule for rule in RULES if rule[3] != int(Kind.ANY)
)  # whose kernels count bonds on their way
INSTANCES: Final[Instances] = (
    *(
        ("tempering/temper_global.cu", instance("temper_global", *rule, r))
        for rule, r in product(COUNTED_RULES, PHILOX_ROUNDS)
    ),
    *((file, instance(name, *rule, r)) for (file, name), rule, r in product(UPDATES, RULES, PHILOX_ROUNDS)),
    *(("measuring/count_replica_packed.cu", name) for name in ("count_replica", "count_lone")),
    *(("measuring/in_time.cu", name) for name in ("correlate_in_time", "sort_in_time")),
    ("measuring/products.cu", "products_of_replicas"),
    ("measuring/local.cu", "squares_of_replicas"),
    ("tempering/lay_tables.cu", "lay_tables"),
    *(("measuring/overlaps.cu", instance("differing_replicas", columns)) for columns in (0, 4)),
)
