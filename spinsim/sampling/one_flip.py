"""Compiled steps of a tabu search: the best flip that is allowed, again and again.

Sites stand in blocks of 64, and the least cost of each block is kept, so that a step reads the neighbours of one
site, a block or two, and one number a block:

    spin   int8 (sites,)          +1 or -1
    cost   (64 * blocks,)         cost of a flip, + ``forbidden`` while the site must not flip; the largest as padding
    side   int8 (64 * blocks,)    1 where the spin is +1 and pairs are looked for, else 0
    low    (2, blocks)            least cost in each block, among its sites of each side

The cost of flipping i is s_i (sum J s_j + h_i) in units, half of the change of the energy. ``weight`` is 2 J, because
a flip of i changes the cost of j by -2 J s_i s_j. It is a matrix in dense problems, without lists of neighbours unless
some of these have a coupling of 0. Costs are int32 if they fit, else int64. Sites that must not flip
before some step are lists, one for each of the next steps (``first``, ``after``), so that they are found at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spinsim.machine.compiled import kernel, step

BLOCK: Final = 64

STEP, ENERGY, BEST, BEST_STEP, UNSAVED, PENDING, NUMBERS = range(7)
"""Places of a search's numbers: steps taken; energy in units, halved, since its start; the lowest one; its step; 1
while the state has it and is not copied; the second site of a pair, or -1; how many numbers there are."""


@step
def field_at(i, spin, start, near, weight, matrix):  # type: ignore[no-untyped-def]
    """Return twice the field of the neighbours of a site."""
    x = np.int64(0)
    if near.size:
        for e in range(start[i], start[i + 1]):
            x += weight[e] * spin[near[e]]
    else:
        for j in range(matrix.shape[1]):
            x += matrix[i, j] * spin[j]
    return x


@kernel
def energy(problem, spin):  # type: ignore[no-untyped-def]
    """Return the energy in units."""
    start, near, weight, matrix, field = problem
    of_bonds = of_fields = np.int64(0)
    for i in range(spin.size):
        of_bonds += spin[i] * field_at(i, spin, start, near, weight, matrix)
        of_fields += spin[i] * field[i]
    return -(of_bonds // 4 + of_fields)


@step
def draw(random):  # type: ignore[no-untyped-def]
    """Return 31 random bits of xorshift64* (Vigna, ACM Trans. Math. Softw. 42, 30 (2016))."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return np.int64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33))


@step
def rescan(b, costs, sides, low, most):  # type: ignore[no-untyped-def]
    """Find the least costs of block b."""
    down = most
    up = most
    for k in range(BLOCK):
        x = costs[b, k]
        down = min(down, x if sides[b, k] == 0 else most)
        up = min(up, x if sides[b, k] != 0 else most)
    low[0, b] = down
    low[1, b] = up


@step
def find(c, costs, sides, low, most, r):  # type: ignore[no-untyped-def]
    """Return a site of least cost on a side, the first one from a random place on; -1 if no site is there.

    Loops that end at the first such site would take longer: those over all places are done many places at a time.
    """
    blocks = low.shape[1]
    least = low[c, 0]
    for b in range(1, blocks):
        least = min(least, low[c, b])
    if least == most:
        return -1
    begin = (r & 0xFFFF) * blocks >> 16
    nearest = blocks
    for b in range(blocks):
        away = b - begin
        away += blocks if away < 0 else 0
        nearest = min(nearest, away if low[c, b] == least else blocks)
    b = begin + nearest
    b -= blocks if b >= blocks else 0
    begin = r >> 16 & (BLOCK - 1)
    nearest = BLOCK
    for k in range(BLOCK):
        away = (k - begin) & (BLOCK - 1)
        nearest = min(nearest, away if (costs[b, k] == least) & (sides[b, k] == c) else BLOCK)
    return b * BLOCK + ((begin + nearest) & (BLOCK - 1))


@step
def change(j, new, cost, side, costs, sides, low, most):  # type: ignore[no-untyped-def]
    """Give site j another cost."""
    old, b, c = cost[j], j // BLOCK, side[j]
    cost[j] = new
    if new < low[c, b]:
        low[c, b] = new
    elif new > old and old == low[c, b]:
        rescan(b, costs, sides, low, most)


@step
def answer(u, start, near, weight, matrix, cost, side, most):  # type: ignore[no-untyped-def]
    """Return the best flip downwards of a neighbour after site u has gone up, with its cost."""
    least, v = np.int64(most), -1
    if matrix.size:
        best = np.int64(most)
        for j in range(matrix.shape[1]):
            w = matrix[u, j]
            best = min(best, np.int64(cost[j]) + w if (side[j] != 0) & (w != 0) else np.int64(most))
        if best < most:
            v = matrix.shape[1]
            for j in range(matrix.shape[1]):
                w = matrix[u, j]
                v = min(v, j if (side[j] != 0) & (w != 0) & (cost[j] + w == best) else matrix.shape[1])
            least = best
    else:
        for e in range(start[u], start[u + 1]):
            x = cost[near[e]] + weight[e]
            if side[near[e]] and x < least:
                least, v = x, near[e]
    return v, least


@step
def choose(start, near, weight, matrix, cost, side, costs, sides, low, most, pairs, random):  # type: ignore[no-untyped-def]
    """Return the site to flip, and the one to flip after it, or -1."""
    up = find(0, costs, sides, low, most, draw(random))
    if not pairs:
        return up, -1
    i, half = up, most // 4
    down = find(1, costs, sides, low, most, draw(random))
    if up < 0 or (down >= 0 and cost[down] < cost[up]):
        i = down
    if up >= 0 and cost[i] >= 0 and cost[up] < half:
        second, x = answer(up, start, near, weight, matrix, cost, side, half)
        if second >= 0 and cost[up] + x <= cost[i]:
            return up, second
    return i, -1


@step
def disturb(i, start, near, weight, matrix, spin, cost):  # type: ignore[no-untyped-def]
    """Change the costs of the neighbours of a site that flips."""
    s = spin[i]
    if matrix.size:
        for j in range(matrix.shape[1]):
            cost[j] -= matrix[i, j] * (s * spin[j])
    else:
        for e in range(start[i], start[i + 1]):
            cost[near[e]] -= weight[e] * (s * spin[near[e]])


@step
def account(gain, spin, best, at):  # type: ignore[no-untyped-def]
    """Add the cost of the next flip to the energy, and copy a best state before it is left for a higher one."""
    if gain > 0 and at[UNSAVED]:
        for k in range(spin.size):
            best[k] = spin[k]
        at[UNSAVED] = 0
    at[ENERGY] += gain
    if at[ENERGY] < at[BEST]:
        at[BEST] = at[ENERGY]
        at[BEST_STEP] = at[STEP]
        at[UNSAVED] = 1


@kernel
def prepare(problem, state, top, pairs):  # type: ignore[no-untyped-def]
    """Set the costs of all flips of the state's spins."""
    start, near, weight, matrix, field = problem
    spin, _, cost, side, low = state[:5]
    most = top[0]
    costs, sides = cost.reshape(-1, BLOCK), side.reshape(-1, BLOCK)
    for i in range(spin.size):
        cost[i] = spin[i] * (field_at(i, spin, start, near, weight, matrix) // 2 + field[i])
        side[i] = 1 if pairs and spin[i] > 0 else 0
    cost[spin.size :] = most
    for b in range(low.shape[1]):
        rescan(b, costs, sides, low, most)


@kernel
def search(steps, patience, problem, state, top, wide, pairs, tenure, spread):  # type: ignore[no-untyped-def]
    """Take steps until their number, or until ``patience`` steps have not lowered the best energy; return those left.

    A flip is forbidden for ``tenure`` steps and up to ``spread`` more. With ``pairs`` this holds for flips downwards
    alone; and where no flip lowers the energy, the best flip upwards is tried together with the best answer to it.
    ``wide`` rescans all blocks after a flip, which is faster if most of them have neighbours of the site.
    """
    start, near, weight, matrix, _ = problem
    spin, best, cost, side, low, first, after, at, random = state
    most = top[0]
    costs, sides = cost.reshape(-1, BLOCK), side.reshape(-1, BLOCK)
    forbidden = most // 2 + 1
    half = most // 4  # above the cost of every flip that is allowed
    while steps > 0 and at[STEP] - at[BEST_STEP] < patience:
        steps -= 1
        t = at[STEP]
        at[STEP] = t + 1

        # flips that are allowed again
        j = first[t % first.size]
        first[t % first.size] = -1
        while j >= 0:
            change(j, cost[j] - forbidden, cost, side, costs, sides, low, most)
            j = after[j]

        # the site to flip
        if at[PENDING] >= 0:
            i = at[PENDING]
            at[PENDING] = -1
        else:
            i, at[PENDING] = choose(start, near, weight, matrix, cost, side, costs, sides, low, most, pairs, random)

        # its energy
        gain = np.int64(cost[i])
        is_forbidden = gain >= half  # as all others are
        if is_forbidden:
            gain -= forbidden
        account(gain, spin, best, at)

        # its neighbours
        s = spin[i]
        if wide:
            disturb(i, start, near, weight, matrix, spin, cost)
        else:
            for e in range(start[i], start[i + 1]):
                j = near[e]
                change(j, cost[j] - weight[e] * (s * spin[j]), cost, side, costs, sides, low, most)

        # itself
        spin[i] = -s
        time = np.int64(0)
        if pairs:
            side[i] = 1 if s < 0 else 0
        if s > 0 or not pairs:
            time = tenure + (draw(random) * spread >> 31)
        cost[i] = forbidden - gain if is_forbidden or time else -gain
        if time and not is_forbidden:
            slot = (t + time) % first.size
            after[i] = first[slot]
            first[slot] = i
        if wide:
            for b in range(low.shape[1]):
                rescan(b, costs, sides, low, most)
        else:
            rescan(i // BLOCK, costs, sides, low, most)
    return steps


@kernel
def recombine(one, other, child, seen, queue, problem, random):  # type: ignore[no-untyped-def]
    """Join two states: where they differ, the child has the better part in each connected set of sites.

    Sets do not touch, so their energies add up (partition crossover: Whitley, Hains, Howe, GECCO (2009), 915). Chance
    decides between parts of equal energy. Returns the number of sets, and of sets that are the other state's.
    """
    start, near, weight, matrix, field = problem
    sets = taken = 0
    for i in range(one.size):
        child[i] = one[i]
        seen[i] = one[i] == other[i]
    for root in range(one.size):
        if seen[root]:
            continue
        head, tail, x = 0, 1, np.int64(0)
        queue[0] = root
        seen[root] = True
        while head < tail:
            i = queue[head]
            head += 1
            x += 2 * field[i] * one[i]
            in_list = near.size > 0
            first, end = (start[i], start[i + 1]) if in_list else (0, matrix.shape[1])
            for e in range(first, end):
                j = near[e] if in_list else e
                w = weight[e] if in_list else matrix[i, e]
                if one[j] == other[j]:
                    x += w * one[i] * one[j]
                elif not seen[j] and (in_list or w != 0):
                    seen[j] = True
                    queue[tail] = j
                    tail += 1
        if x < 0 or (x == 0 and draw(random) & 1):
            taken += 1
            for k in range(tail):
                child[queue[k]] = other[queue[k]]
        sets += 1
    return sets, taken
