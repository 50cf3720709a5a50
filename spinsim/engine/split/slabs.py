"""An engine of lattices that are cut into slabs, one per device, in this process and in other ranks.

Random numbers depend on a site's place in the whole lattice, so that each slab moves its spins like an engine of the
whole lattice. Slabs need the layers beside them. They exchange these layers, or read them in place if GPUs can access
each other's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.engine.choosing import check_memory, choose
from spinsim.engine.devices import seats
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.given import apply_in_host_memory
from spinsim.engine.measuring.sums import Counts
from spinsim.engine.moves.exchange import snapshot_of
from spinsim.engine.moves.move import Moment, Move
from spinsim.engine.protocols import Engine
from spinsim.engine.split.engine import Method, Part, SplitEngine
from spinsim.engine.update import ModelSizes, Slab
from spinsim.errors import InputError
from spinsim.model.ising import Ising
from spinsim.packing import Bits
from spinsim.parallel.group import Each, Group, Member, Seat, make_group, together
from spinsim.parallel.session import Kept

SMALLEST: Final = 2**24
"""Fewest sites of a slab on a GPU for which one more GPU makes the run faster: waiting takes microseconds."""

ROWS: Final = 3  # axis of a snapshot's spins along which lattices are cut


def cuts(layers: int, slabs: int) -> list[range]:
    """Layers of each slab: pairs of layers, divided as equally as possible."""
    ends = [2 * (layers // 2 * k // slabs) for k in range(slabs + 1)]
    return [range(first, stop) for first, stop in pairwise(ends)]


class SlabEngine(SplitEngine):
    """An ``Engine`` that combines engines of slabs, without ladders of temperatures.

    Slabs carry out a request together. GPUs may still have queued sweeps, in which they wait for each other. All other
    requests are made after these sweeps, because a request for which the host waits could keep a GPU from starting.
    """

    def __init__(self, model: Ising, replicas: int, members: Sequence[Member], engines: Sequence[Any]) -> None:
        self._members, self._engines = members, Each(engines)
        every = range(model.samples)
        super().__init__(model, replicas, [Part(m.seat.place, e, every) for m, e in zip(members, engines, strict=True)])
        self.wait()

    def _all(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return together(self._members, _of_engine, function, self._engines, *arguments)

    def _do(self, method: Method, *arguments: Any) -> list[Any]:
        """Call a method for each slab; all requests but sweeps are made when sweeps are done."""
        if method not in (Engine.sweep, Engine.wait):
            self.wait()
        return super()._do(method, *arguments)

    def part_rates(self) -> list[float]:
        """Return no rates: slabs wait for each other during their work, so that no device has its own rate."""
        return []

    def begin_counts(self) -> Callable[[], Counts]:
        self.wait()
        counts = Counts(*sum(self._all(_totals)))
        return lambda: counts

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        return np.concatenate(self._do(Engine.spins, sample, replica))

    def bits(self, sample: int, replica: int) -> Bits:
        """Return one configuration as bits; slabs have whole rows, of multiples of 256 sites."""
        return np.concatenate(self._do(Engine.bits, sample, replica))

    def copy_from(self, parent: npt.NDArray[np.integer]) -> None:
        self._do(Engine.copy_from, parent)
        self.wait()

    def apply(self, move: Move, moment: Moment) -> None:
        """Apply a move in the memory of this process, because a slab has only a part of a lattice."""
        apply_in_host_memory(self, move, moment)

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Refuse a ladder, because exchanges would wait for the energies of all slabs."""
        raise InputError("a lattice that is cut into slabs takes no ladder: make its engine with slabs=False")

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        saved: list[dict[str, npt.NDArray[np.generic]]] = self._do(Engine.snapshot)
        return saved[0] | {"spins": np.concatenate([each["spins"] for each in saved], axis=ROWS)}

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        spins, self.half_sweep = np.asarray(saved["spins"], np.uint64), int(saved["half_sweep"])
        own = (spins[:, :, :, rows] for rows in self._rows(spins.shape[ROWS]))
        self._do(Engine.restore, Each(snapshot_of(words, self.half_sweep, 0, None) for words in own))

    def _rows(self, rows: int) -> list[slice]:
        """Return the rows of each slab, numbered through all planes."""
        layers = _layers(self.model)
        a_layer = rows // layers
        return [slice(a_layer * one.start, a_layer * one.stop) for one in cuts(layers, len(self._members))]


def seats_of_slabs(model: Ising, replicas: int, device: str) -> list[Seat]:
    """Devices that get slabs of a model's lattices; empty if lattices stay whole, with or without idle devices."""
    there, lattices = seats(device), model.samples * replicas
    if not _can_be_cut(model, replicas, len(there)):
        return []
    most = min(len(there), _layers(model) // 2)
    if device != "cpu":
        most = min(most, lattices * model.sites // SMALLEST)
    return there[:most] if most > lattices else []


def slabs_in_words(model: Ising, replicas: int, device: str) -> str:
    """Describe in words how devices share the lattices of a model; empty if each device has whole ones."""
    given, there, lattices = seats_of_slabs(model, replicas, device), seats(device), model.samples * replicas
    if not _can_be_cut(model, replicas, len(there)):
        return ""
    which = "one lattice" if lattices == 1 else f"each of {lattices} lattices"
    kind = "ranks" if device == "cpu" else "GPUs"
    if not given:
        return f"{which} whole, too small for slabs, which leaves {len(there) - lattices} of {len(there)} {kind} idle"
    ranks = len({seat.rank for seat in given})
    of_ranks = f" of {ranks} ranks" if ranks > 1 and device != "cpu" else ""
    idle = len(there) - len(given)
    leaves = f", which leaves {idle} idle" if idle else ""
    return f"{which} in {len(given)} slabs over {len(given)} {kind}{of_ranks}{leaves}"


def _can_be_cut(model: Ising, replicas: int, devices: int) -> bool:
    """Return True if there are fewer lattices than devices, layers fill groups, and the update supports slabs."""
    lattice, are_few = model.lattice, model.samples * replicas < devices
    fills = lattice is not None and lattice.rows_can_be_packed
    return are_few and fills and choose(ModelSizes(model), replicas).in_slabs


def _layers(model: Ising) -> int:
    assert model.lattice is not None  # noqa: S101  (checked by ``_can_be_cut``)
    return model.lattice.shape[-1]


def in_slabs(given: Sequence[Seat], model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> SlabEngine:
    if given[0].gpu is None:
        check_memory(ModelSizes(model), replicas)
    members = make_group(given)
    of_slabs = cuts(_layers(model), len(given))
    engines = together(members, _make, Each(of_slabs), model, replicas, dynamics, threads)
    return SlabEngine(model, replicas, members, engines)


def _make(group: Group, layers: range, model: Ising, replicas: int, dynamics: Dynamics, threads: int | None) -> Kept:
    update, slab = choose(ModelSizes(model), replicas), Slab(layers, group)
    if group.gpu is not None:
        return Kept(update.on_cuda(model, replicas, dynamics, group.gpu, slab))
    return Kept(update.on_cpu(model, replicas, dynamics, threads, slab))


def _of_engine(group: Group, function: Callable[..., Any], engine: Engine, *arguments: Any) -> Any:
    return function(engine, *arguments)


def _totals(engine: Engine) -> npt.NDArray[np.int64]:
    return np.stack(engine.counts()[:3])
