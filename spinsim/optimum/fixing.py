"""Sites that can be removed exactly before a search for the lowest energy, which then differs by a constant.

Each rule removes one site i, whose spin then follows from spins that remain, s_i = sign(sum J s + h) over at most three
terms, so that the removal can be undone. With the energy -J_ij s_i s_j - ... - h_i s_i:

    fixed     |h_i| >= sum_j |J_ij|: its field decides. Includes sites without bonds.
    joined    |J_ij| >= |h_i| + sum over other bonds: it follows its neighbour j. Includes sites of one bond (dangling
              chains), and of two bonds without field (series).
    star      three terms in all, as two bonds and a field or three bonds: the minimum over s_i is
              -|a s_x + b s_y + c s_z|, an even function of three spins, hence a constant and three couplings (the
              star-triangle relation). A field is a coupling to a spin that is always +1.

Two rules remove many sites at once:

    unfrustrated  all bonds and fields of a connected part can be satisfied together.
    roof duality  a minimum cut of the doubled graph (Hammer, Hansen and Simeone, Math. Program. 28, 121 (1984); Boros
                  and Hammer, Discrete Appl. Math. 123, 155 (2002)) fixes sites that have one value in all optima.

Each rule keeps at least one optimum, not all of them (weak persistency): ties are broken towards +1. Roof duality alone
keeps all (strong persistency).

All values are whole numbers of half quanta. The couplings of a star are quarters of sums of four whole numbers of one
parity, hence multiples of half a quantum. What is removed between two sites, or one site and the field, is in total
again such a minimum of the integers given, so that halves are never halved again; three bonds can lead to quarters, and
such a star stays. No rule increases the sum of all |J| and |h|, so that values stay exact.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.errors import InputError
from spinsim.machine.compiled import inlined, kernel
from spinsim.model.graph import Graph
from spinsim.model.ising import Ising

_MOST_HALVED: Final = 2.0**51  # sum of |J| and |h| in quanta up to which half quanta are exact
MOST_BONDS_FOR_CUTS: Final = 2**17  # up to which a minimum cut takes about a second
_DENSE: Final = 2**14  # the same for graphs of more than 16 bonds a site, of which cuts fix hardly any
_LARGEST_FLOW: Final = 2**31 - 1
_KINDS: Final = ("persistent", "joined", "chains", "series", "stars")
_PERSISTENT, _JOINED, _CHAIN, _SERIES, _STAR = range(len(_KINDS))
_TERMS: Final = 3
Spins = npt.NDArray[np.int8]
Integers = npt.NDArray[np.int64]
Sites = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


class Links(NamedTuple):
    """A graph that changes. Bond b is the halves 2 b and 2 b + 1, each in the list of the site that it leaves."""

    first: Sites  # half with which the list of each site begins, -1 where it is empty
    after: Sites  # next half of the same list, or -1
    before: Sites  # previous one, or -1
    to: Sites  # site to which each half leads
    weight: Integers  # coupling of each bond in half quanta, 0 where it is removed
    field: Integers  # of each site, in half quanta


class Removals(NamedTuple):
    """Removed sites in their order: s = sign(sum of value s_of), where site number ``sites`` is always +1."""

    site: Sites  # (sites,), -1 past the last
    of: Sites  # (sites, 3)
    value: Integers  # (sites, 3)


class Reduced:
    """A problem without the sites that could be removed.

    Attributes:
        parts: Connected parts that are left, each a model of its own; empty if all is solved.
        sites: Sites of the whole that each part has, in their order.
        counts: Number of sites removed as ``persistent`` (a field or a cut decides), ``joined``
            (they follow a neighbour), in dangling ``chains``, in ``series`` (two bonds), ``stars``
            (three bonds) and ``unfrustrated`` parts; and of the ``components`` that are left.
        offset_energy: E(whole) is this plus the energies of the parts, exactly, whatever their
            spins are, if ``undo`` completes the whole.
    """

    def __init__(
        self, model: Ising, parts: list[Ising], sites: list[npt.NDArray[Any]], removed: Removals, counts: dict[str, int]
    ) -> None:
        self.parts, self.sites, self.counts = parts, sites, counts
        self._removed, self._all = removed, model.sites
        self.offset_energy = 0.0
        if model in parts:
            return
        ones = [np.ones(part.sites, np.int8) for part in parts]
        rest = sum(float(part.energy(spins[None])[0]) for part, spins in zip(parts, ones, strict=True))
        self.offset_energy = float(model.energy(self.undo(ones)[None])[0]) - rest

    def undo(self, spins_of_parts: list[Spins]) -> Spins:
        """The best spins of the whole, int8 (sites,), for given spins of each part."""
        spins = np.ones(self._all + 1, np.int8)  # the last stands for fields
        for sites, some in zip(self.sites, spins_of_parts, strict=True):
            spins[sites] = some
        _undo.with_steps(self._all, self._removed, spins)
        return spins[:-1]


def reduce(model: Ising, stars: bool = True) -> Reduced:
    """Remove all sites that can be removed without losing the lowest energy.

    Args:
        model: A model of one sample.
        stars: False keeps sites of three bonds, whose removal joins their neighbours.

    Raises:
        InputError: for several samples, each of which is a problem of its own.
    """
    if model.samples > 1:
        raise InputError(f"model {model.name} has {model.samples} samples: give one, such as model.of_samples(0, 1)")
    sites, steps, unfrustrated, done = model.sites, model.sites + 2 * model.bonds, 0, 0
    removed = Removals(
        np.full(sites, -1, np.int32), np.full((sites, _TERMS), sites, np.int32), np.zeros((sites, _TERMS), np.int64)
    )
    if _is_dense_and_stays(model):
        told = dict.fromkeys((*_KINDS, "unfrustrated", "isolated"), 0) | {"components": 1}
        return Reduced(model, [model], [np.arange(sites, dtype=np.int32)], removed, told)
    links, step = _links(model)
    counts, alone = np.zeros(len(_KINDS), np.int64), int(np.count_nonzero(links.first < 0))
    gone, given, queue = np.zeros(sites, np.bool_), np.zeros(sites, np.int8), np.arange(sites, dtype=np.int32)
    while len(queue):
        waiting = np.zeros(sites, np.bool_)
        waiting[queue] = True
        ring = np.resize(queue, sites)
        rules = (step, stars)
        done = _remove.with_steps(steps, links, removed, gone, counts, done, ring, len(queue), waiting, given, rules)
        part, spins, verdicts = np.full(sites, -1, np.int32), np.ones(sites, np.int8), np.zeros(sites, np.int8)
        number = _find_parts.with_steps(steps, links, gone, part, spins, verdicts, np.empty(sites, np.int32))
        given = np.where(part >= 0, spins * verdicts[part], 0).astype(np.int8)
        unfrustrated += int(np.count_nonzero(given))
        if not given.any():
            given = _in_all_optima(links)
        queue = np.flatnonzero(given).astype(np.int32)
    counts[_PERSISTENT] -= unfrustrated
    counts[_CHAIN] -= alone
    told = dict(zip(_KINDS, counts.tolist(), strict=True))
    told |= {"unfrustrated": unfrustrated, "isolated": alone, "components": number}
    is_same = done == 0 and number == 1 and bool(links.weight.all())
    parts, places = ([model], [np.arange(sites, dtype=np.int32)]) if is_same else _parts(model, links, part, number)
    return Reduced(model, parts, places, removed, told)


def _is_dense_and_stays(model: Ising) -> bool:
    """Return True for dense problems of which no rule removes a site, as is seen without lists of bonds."""
    sites, bonds = model.sites, model.bonds
    if bonds <= max(_DENSE, 16 * sites) or 4 * bonds < sites**2:  # others may be cut, or sites have fewer neighbours
        return False
    given = model.graph.edges, model.integer_couplings(0), np.abs(model.integer_fields(0))
    numbers = np.zeros((3, sites), np.int64)
    return bool(_stays.with_steps(bonds, *given, np.zeros((sites, sites), np.bool_), numbers, np.zeros(sites, np.int8)))


def _links(model: Ising) -> tuple[Links, int]:
    """The graph of a model, and the least unit, in half quanta, in which all values of reduced problems are exact."""
    couplings, fields, edges = model.integer_couplings(0), model.integer_fields(0), model.graph.edges
    total = float(np.abs(couplings).sum() + np.abs(fields).sum())
    empty, to = np.full(model.sites, -1, np.int32), edges[:, ::-1].flatten()  # a copy
    links = Links(empty, np.full(to.size, -1, np.int32), np.full(to.size, -1, np.int32), to, 2 * couplings, 2 * fields)
    last, latest = np.full(model.sites, -1, np.int32), np.empty(model.sites, np.int32)
    _fill.with_steps(model.bonds, links, last, latest)
    return links, 1 if total < _MOST_HALVED else 2


def _parts(
    model: Ising, links: Links, part: npt.NDArray[np.int32], number: int
) -> tuple[list[Ising], list[npt.NDArray[Any]]]:
    """Connected parts as models, whose sites and bonds keep their order, and the sites of each."""
    kept, bonds = np.flatnonzero(part >= 0), np.flatnonzero(links.weight)
    kept = kept[np.argsort(part[kept], kind="stable")].astype(np.int32)
    sites = np.split(kept, np.cumsum(np.bincount(part[kept], minlength=number))[:-1]) if number else []
    ends = links.to.reshape(-1, 2)[:, ::-1][bonds]
    owner = part[ends[:, 0]] if len(bonds) else np.zeros(0, np.int32)
    order = np.argsort(owner, kind="stable")
    pieces = np.split(order, np.cumsum(np.bincount(owner, minlength=number))[:-1]) if number else []
    at = np.empty(model.sites, np.int32)
    unit, parts = model.quantum / 2, []
    for some, mine in zip(sites, pieces, strict=True):
        at[some] = np.arange(len(some))
        couplings, fields = links.weight[bonds[mine]] * unit, links.field[some] * unit
        parts.append(Ising(Graph(len(some), at[ends[mine]]), couplings, fields, name=model.name))
    return parts, sites


def _in_all_optima(links: Links) -> Spins:
    """The spins, int8 (sites,), that a minimum cut proves to be equal in all optima; 0 elsewhere.

    Each site i has two nodes, for s_i and for -s_i; those on the source's side of the least cut have the value +1. A
    problem of many bonds, or of values too different for 32-bit capacities, is left as it is.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    sites, bonds, in_field = len(links.field), np.flatnonzero(links.weight), np.flatnonzero(links.field)
    spins = np.zeros(sites, np.int8)
    values = np.concatenate([links.weight[bonds], links.field[in_field]])
    unit = max(int(np.gcd.reduce(values)), 1)
    flow = int(np.abs(links.field[in_field]).sum()) // unit
    largest = int(np.abs(values).max(initial=0)) // unit
    most = _DENSE if len(bonds) > 16 * sites else MOST_BONDS_FOR_CUTS
    if not len(in_field) or len(bonds) > most or max(flow, 2 * largest) > _LARGEST_FLOW:
        return spins
    i, j, sizes = links.to[2 * bonds], links.to[2 * bonds + 1], np.abs(values) // unit
    turned = np.where(links.weight[bonds] < 0, sites, 0)
    up, down = np.where(links.field[in_field] > 0, [[0], [sites]], [[sites], [0]]) + in_field
    source, sink = (np.full(len(in_field), 2 * sites + k) for k in (0, 1))
    tails = np.concatenate([i, j + turned, i + sites, j + sites - turned, source, down])
    heads = np.concatenate([j + turned, i, j + sites - turned, i + sites, up, sink])
    capacities = np.concatenate([np.tile(sizes[: len(bonds)], 4), np.tile(sizes[len(bonds) :], 2)]).astype(np.int32)
    ends = tails.astype(np.int32), heads.astype(np.int32)
    network = csr_array((capacities, ends), shape=(2 * sites + 2, 2 * sites + 2))
    rest: Any = network - maximum_flow(network, 2 * sites, 2 * sites + 1).flow
    rest.eliminate_zeros()
    reached = np.zeros(2 * sites + 2, np.int8)
    reached[breadth_first_order(rest, 2 * sites, return_predecessors=False)] = 1
    return reached[:sites] - reached[sites:-2]


@kernel
def _stays(edges, couplings, fields, joined, numbers, sign):  # type: ignore[no-untyped-def]
    """Return True if no rule applies: to one site, as all have small enough terms; to a part, as all are one.

    Each site has bonds to half of all sites, hence two sites without a bond have a common neighbour; and a triangle
    with site 0 is frustrated. ``fields`` are |h|. False where that is not so, or where bonds are parallel or 0.
    """
    sites = fields.size
    total, largest, degree = numbers[0], numbers[1], numbers[2]
    for b in range(edges.shape[0]):
        i, j, size = min(edges[b, 0], edges[b, 1]), max(edges[b, 0], edges[b, 1]), abs(couplings[b])
        if size == 0 or joined[i, j]:
            return False
        joined[i, j] = True
        total[i] += size
        total[j] += size
        largest[i] = max(largest[i], size)
        largest[j] = max(largest[j], size)
        degree[i] += 1
        degree[j] += 1
        if i == 0:
            sign[j] = 1 if couplings[b] > 0 else -1
    for i in range(sites):
        if 2 * degree[i] < sites or fields[i] >= total[i] or 2 * largest[i] >= total[i] + fields[i]:
            return False
    for b in range(edges.shape[0]):
        product = sign[edges[b, 0]] * sign[edges[b, 1]]
        if product != 0 and (product > 0) != (couplings[b] > 0):
            return True
    return False


@inlined
def _link(links: Links, site: int, half: int) -> None:
    links.before[half] = -1
    links.after[half] = links.first[site]
    if links.first[site] >= 0:
        links.before[links.first[site]] = half
    links.first[site] = half


@inlined
def _unlink(links: Links, site: int, half: int) -> None:
    before, after = links.before[half], links.after[half]
    if before >= 0:
        links.after[before] = after
    else:
        links.first[site] = after
    if after >= 0:
        links.before[after] = before


@inlined
def _cut(links: Links, half: int) -> int:
    """Remove the bond of a half, and return its coupling."""
    bond = half >> 1
    weight: int = links.weight[bond]
    _unlink(links, links.to[half ^ 1], half)
    _unlink(links, links.to[half], half ^ 1)
    links.weight[bond] = 0
    return weight


@inlined
def _add(links: Links, x: int, y: int, weight: int, free: int) -> None:
    """Add a coupling between sites x and y to their bond, or to the bond ``free`` where they have none."""
    if x == links.field.size or y == links.field.size:
        links.field[min(x, y)] += weight
        return
    at_x, at_y, half = links.first[x], links.first[y], -1
    while at_x >= 0 and at_y >= 0 and half < 0:
        if links.to[at_x] == y:
            half = at_x
        elif links.to[at_y] == x:
            half = at_y
        at_x, at_y = links.after[at_x], links.after[at_y]
    if half >= 0:
        links.weight[half >> 1] += weight
        if links.weight[half >> 1] == 0:
            _cut(links, half)
    elif weight != 0:
        links.weight[free] = weight
        links.to[2 * free], links.to[2 * free + 1] = y, x
        _link(links, x, 2 * free)
        _link(links, y, 2 * free + 1)


@kernel
def _fill(links, last, latest):  # type: ignore[no-untyped-def]
    """Make the lists of halves, then merge parallel bonds; ``last`` (sites,) begins as -1."""
    for bond in range(links.weight.size):
        if links.weight[bond] != 0:
            _link(links, links.to[2 * bond + 1], 2 * bond)
            _link(links, links.to[2 * bond], 2 * bond + 1)
    for i in range(links.field.size):
        half = links.first[i]
        while half >= 0:
            j, after = links.to[half], links.after[half]
            if last[j] == i:
                links.weight[latest[j] >> 1] += _cut(links, half)
            else:
                last[j], latest[j] = i, half
            half = after
        half = links.first[i]
        while half >= 0:
            after = links.after[half]
            if links.weight[half >> 1] == 0:
                _cut(links, half)
            half = after


@inlined
def _push(site: int, ring: Sites, head: int, count: int, waiting: Flags) -> int:
    """Let a site wait in the ring, unless it does; return the number of sites that wait."""
    if waiting[site]:
        return count
    waiting[site] = True
    ring[(head + count) % ring.size] = site
    return count + 1


@inlined
def _fold(links: Links, i: int, j: int, sign: int, ring: Sites, head: int, count: int, waiting: Flags) -> int:
    """Let s_i = sign s_j, where j may stand for the field, and return the number of sites that wait."""
    if j < links.field.size:
        links.field[j] += sign * links.field[i]
        count = _push(j, ring, head, count, waiting)
    while links.first[i] >= 0:
        half = links.first[i]
        k = links.to[half]
        weight = _cut(links, half)
        if k != j:
            _add(links, k, j, sign * weight, half >> 1)
            count = _push(k, ring, head, count, waiting)
    return count


@inlined
def _open(links: Links, i: int, of: Sites, value: Integers, step: int) -> bool:
    """Replace a star of three terms by three couplings; return False, and do nothing, where these are not exact."""
    half, terms = links.first[i], 0
    free = np.empty(_TERMS, np.int64)
    of[2], value[2] = links.field.size, links.field[i]
    while half >= 0:
        of[terms], value[terms], free[terms] = links.to[half], links.weight[half >> 1], half >> 1
        half = links.after[half]
        terms += 1
    a, b, c = value[0], value[1], value[2]
    all_up, third, second, first = abs(a + b + c), abs(a + b - c), abs(a - b + c), abs(b + c - a)
    quadruple = (all_up + third - second - first, all_up - third + second - first, all_up - third - second + first)
    for pair in range(_TERMS):
        if quadruple[pair] % (4 * step) != 0:
            value[:] = 0
            return False
    while links.first[i] >= 0:
        _cut(links, links.first[i])
    for pair in range(_TERMS):  # the first and second, first and third, second and third
        _add(links, of[pair // 2], of[1 + (pair + 1) // 2], quadruple[pair] // 4, free[pair])
    return True


@kernel
def _remove(links, removed, gone, counts, done, ring, count, waiting, given, rules):  # type: ignore[no-untyped-def]
    """Apply all rules to the sites in the ring and to all that change, and return the number of removed sites.

    Sites whose spin is ``given`` (not 0) are fixed to it.
    """
    head, everywhere = 0, links.field.size
    step, stars = rules
    while count:
        i = ring[head]
        head, count = (head + 1) % ring.size, count - 1
        waiting[i] = False
        if gone[i]:
            continue
        of, value, field = removed.of[done], removed.value[done], links.field[i]
        degree, largest, total, strongest = 0, 0, abs(field), -1
        half = links.first[i]
        while half >= 0:
            size = abs(links.weight[half >> 1])
            if size > largest:
                largest, strongest = size, half
            degree, total, half = degree + 1, total + size, links.after[half]
        is_fixed = given[i] != 0 or 2 * abs(field) >= total
        if is_fixed or 2 * largest >= total:
            if is_fixed:
                j, sign = everywhere, given[i] if given[i] != 0 else 1 if field >= 0 else -1
                kind = _CHAIN if degree <= 1 and given[i] == 0 else _PERSISTENT
            else:
                j, sign = links.to[strongest], 1 if links.weight[strongest >> 1] > 0 else -1
                kind = _CHAIN if degree == 1 else _SERIES if degree == 2 else _JOINED
            of[0], value[0] = j, sign
            count = _fold(links, i, j, sign, ring, head, count, waiting)
        elif (degree == 2 or (degree == 3 and field == 0 and stars)) and _open(links, i, of, value, step):
            kind = _SERIES if degree == 2 else _STAR
            for k in range(degree):
                count = _push(of[k], ring, head, count, waiting)
        else:
            continue
        links.field[i], gone[i], removed.site[done] = 0, True, i
        counts[kind] += 1
        done += 1
    return done


@kernel
def _undo(removed, spins):  # type: ignore[no-untyped-def]
    """Give the removed sites the spins that follow from all others, the last one removed first."""
    for k in range(removed.site.size - 1, -1, -1):
        if removed.site[k] >= 0:
            local = 0
            for term in range(_TERMS):
                local += removed.value[k, term] * spins[removed.of[k, term]]
            spins[removed.site[k]] = 1 if local >= 0 else -1


@kernel
def _find_parts(links, gone, part, spins, verdicts, stack):  # type: ignore[no-untyped-def]
    """Number the connected parts, and return how many there are.

    ``spins`` satisfy the bonds of each part up to frustrated ones. ``verdicts`` are 1 or -1 where these spins, times
    that sign, satisfy all bonds and fields, else 0.
    """
    number = 0
    for root in range(part.size):
        if gone[root] or part[root] >= 0:
            continue
        part[root], stack[0], waiting = number, root, 1
        frustrated, along, against = False, False, False
        while waiting:
            waiting -= 1
            i = stack[waiting]
            along |= links.field[i] * spins[i] > 0
            against |= links.field[i] * spins[i] < 0
            half = links.first[i]
            while half >= 0:
                j, spin = links.to[half], spins[i] if links.weight[half >> 1] > 0 else -spins[i]
                if part[j] < 0:
                    part[j], spins[j], stack[waiting] = number, spin, j
                    waiting += 1
                elif spins[j] != spin:
                    frustrated = True
                half = links.after[half]
        verdicts[number] = 0 if frustrated or (along and against) else -1 if against else 1
        number += 1
    return number
