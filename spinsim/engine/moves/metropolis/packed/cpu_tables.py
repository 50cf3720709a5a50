"""Acceptance tables of each lane on the CPU, of one temperature or of the places of a ladder."""

from __future__ import annotations

import math

import numpy as np

from spinsim.acceptance import LARGEST_EXPONENT, exp_reduced
from spinsim.engine.layouts.replica_packed.adders import ONE, ZERO
from spinsim.machine.compiled import kernel
from spinsim.packing import LANES


@kernel
def lay_one_temperature(costs, beta, zero_acceptance, always, planes, thresholds):  # type: ignore[no-untyped-def]
    """``Tables`` (blocks, ...) for one temperature; returns the last class, of the cheapest first, with bits in planes.

    ``costs`` (table, class) are flip costs in quanta, ``beta`` is the inverse temperature times the quantum. The
    numbers are those of ``acceptance``; annealing asks for them so often that small models would wait for NumPy.
    """
    classes, last = costs.shape[1], 0
    for table in range(costs.shape[0]):
        for c in range(classes):
            cost, probability = costs[table, c], 1.0
            if cost == 0:
                probability = zero_acceptance
            elif cost > 0:
                mantissa, power = exp_reduced(-min(beta * np.float64(cost), LARGEST_EXPONENT))
                probability = math.ldexp(mantissa, int(power))
            sure, threshold = ZERO, ZERO
            if probability >= 1.0:
                sure = ~ZERO
            else:
                threshold = np.uint64(math.ldexp(probability, 64))
            always[:, table, c] = sure
            thresholds[:, table, c] = threshold
            in_planes = sure
            for plane in range(planes.shape[2]):
                word = ZERO - (threshold >> np.uint64(63 - plane) & ONE)
                planes[:, table, plane, c] = word
                in_planes |= word
            if in_planes != ZERO:
                last = max(last, classes - 1 - c)
    return last


@kernel
def lay_tables(place, used, certain, limits, always, planes, thresholds):  # type: ignore[no-untyped-def]
    """One sample's ``Tables`` for replicas at temperatures ``place`` (replicas,).

    ``certain`` and ``limits`` hold, for each table, class and temperature, whether a flip needs no random number and
    else its threshold. Sites look at the tables from ``used[0]`` to below ``used[1]``; others, and lanes past the last
    replica, are left as they are.
    """
    temperatures = limits.shape[2]
    for block in range(always.shape[0]):
        places = place[block * LANES : (block + 1) * LANES]
        lanes = np.zeros((2, temperatures), np.uint64)  # those at each temperature
        for lane in range(places.size):
            lanes[lane // 64, places[lane]] |= ONE << np.uint64(lane % 64)
        for table in range(used[0], used[1]):
            for c in range(limits.shape[1]):
                of_class, sure = limits[table, c], certain[table, c]
                of_lanes = thresholds[block, table, c]
                for lane in range(places.size):
                    of_lanes[lane] = of_class[np.uint32(places[lane])]  # an index without sign needs no check
                for half in range(2):
                    here = lanes[half]
                    word = ZERO
                    for t in range(temperatures):
                        word |= (ZERO - np.uint64(sure[t])) & here[t]
                    always[block, table, c, half] = word
                    for plane in range(planes.shape[2]):
                        word, shift = ZERO, np.uint64(63 - plane)
                        for t in range(temperatures):
                            word |= (ZERO - (of_class[t] >> shift & ONE)) & here[t]
                        planes[block, table, plane, c, half] = word
