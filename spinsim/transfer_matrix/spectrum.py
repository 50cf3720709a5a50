"""The spectrum of one disorder sample at one temperature: sector after sector, and its matrix elements.

Several devices may share each vector. They are chosen here, and rank 0 directs a solver at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import free_blocks, free_in_blocks, names
from spinsim.engine.devices import CUDA, seats
from spinsim.errors import InputError
from spinsim.inputs.texts import count
from spinsim.machine.memory import available_bytes, on_gpu, readable
from spinsim.machine.threads import Threads
from spinsim.model.ising import Ising
from spinsim.parallel.group import Each, Group, Member, Seat, together
from spinsim.parallel.session import Kept, answers, on_node, others
from spinsim.transfer_matrix import lanczos
from spinsim.transfer_matrix.lanczos import (
    VECTORS,
    Cause,
    Levels,
    NotConvergedError,
    Search,
    ThickRestart,
    at_once,
    one_by_one,
)
from spinsim.transfer_matrix.layer import MOST_SITES, SECTORS, Layer
from spinsim.transfer_matrix.operator import TransferOperator
from spinsim.transfer_matrix.vectors import MOST_TOP, ROTATED, Share, Vectors, buffer_bytes

Array = npt.NDArray[np.float64]
Fixed = dict[int, int]  # spins, +1 or -1, by site
RESOLUTION: Final = 1e-14  # resolution of ln(lambda_0 / lambda), by rounding in T
_FEWEST: Final = 4  # stored vectors, in addition to the wanted ones, below which Lanczos does without a basis
_BESIDE: Final = {"cpu": 0, "cuda": 2**30}  # bytes of a GPU for kernels, cuBLAS, NCCL and short arrays
_TINY: Final = 2**12  # amplitudes of vectors so short that a basis is always stored


def matrix_elements(model: Ising, vectors: dict[str, Any], fixed: Fixed, share: Share) -> dict[str, Array]:
    """<0|s_i|level> and <0|s_i s_j|level> of the first sector's lowest state.

    s_i leads from even states to odd ones and s_i s_j back. ``sigma`` (level, site) therefore needs both sectors and
    has the odd states, ``sigma_sigma`` (level, bond) has the states of the first sector. In a field both have all
    states. The sign of a vector is free: it is chosen so that the first large element is positive. Degenerate levels
    may be any mixture of each other.
    """
    first = next(iter(vectors))
    ground = vectors[first][0]
    others = vectors.get("odd") if first == "even" else vectors.get("all")
    elements: dict[str, Array] = {}
    if others is not None:
        sums = [[_sum(ground * x, site, fixed) for site in range(model.sites)] for x in others]
        sigma = np.stack([share.sum(np.array(row)) for row in sums])
        signs = np.array([_sign(row) for row in sigma])
        signs[0] = 1.0 if first == "all" else signs[0]  # expectation values of one state
        elements["sigma"] = sigma * signs[:, None]
    pairs = np.stack([share.sum(_bonds(ground * x, model.graph.edges, fixed)) for x in vectors[first]])
    if first != "all":
        signs = np.array([1.0, *(_sign(row) for row in pairs[1:])])
    elements["sigma_sigma"] = pairs * signs[:, None]
    return elements


def _sign(row: Array) -> float:
    """Sign of the first element of at least half the largest size."""
    sizes = np.abs(row)
    if not sizes.size or not sizes.max() > 0:
        return 1.0
    return float(np.sign(row[np.argmax(sizes >= sizes.max() / 2)]))


def fixed_spins(layer: Layer, share: Share) -> Fixed:
    """Spins that are the same in all states of a device.

    These are the last spin where it is down, and the spins whose values number the parts of a vector.
    """
    free = layer.bits - share.top
    fixed = {free + bit: 2 * (share.index >> bit & 1) - 1 for bit in range(share.top)}
    return fixed | ({layer.sites - 1: -1} if layer.sign else {})


def _weighted(w: Any, site: int, fixed: Fixed) -> Any:
    """The sum over the spin of a site of s w, a vector of half the length; s w where the spin is fixed."""
    if site in fixed:
        return fixed[site] * w
    halves = w.reshape(-1, 2, 1 << site)
    return (halves[:, 1] - halves[:, 0]).reshape(-1)


def _sum(w: Any, site: int, fixed: Fixed) -> float:
    """Sum of s w over the states of this device."""
    return fixed[site] * float(w.sum()) if site in fixed else float(_weighted(w, site, fixed).sum())


def _bonds(w: Any, edges: npt.NDArray[np.int32], fixed: Fixed) -> Array:
    """Sum of s_i s_j w over the states of this device, for each bond."""
    sums, halves = np.zeros(len(edges)), {}
    for bond in np.argsort(edges.max(axis=1), kind="stable"):
        low, high = sorted(int(end) for end in edges[bond])
        if high not in halves:
            halves = {high: _weighted(w, high, fixed)}
        sums[bond] = _sum(halves[high], low, fixed)
    return sums


def interlayer(operator: TransferOperator, vectors: Vectors, x: Any) -> float:
    """Sum over sites of <x| s_i T s_i |x>, the eigenvalue of x times <s_i s_i'>; T is of the sector of s_i x."""
    y, out, total, fixed = vectors.empty(), vectors.empty(), 0.0, fixed_spins(operator.layer, vectors.share)
    for site in range(operator.layer.sites):
        y[:] = x
        if site in fixed:
            y *= fixed[site]
        else:
            y.reshape(-1, 2, 1 << site)[:, 0] *= -1
        operator.apply(y, out)
        total += vectors.dot(y, out)
    return total


@dataclass(frozen=True)
class Settings:
    """Parameters of the search for levels; the settings of a run have checked each by itself."""

    eigenvalues: int = 2  # levels of each sector
    tolerance: float = lanczos.TOLERANCE  # relative residual at which a level has converged
    method: str = "auto"  # how T is applied, see ``TransferOperator``
    basis: int | None = None  # stored vectors, 0 for none, None for as many as serve and fit
    seed: int = 1  # seed of the start vectors
    device: str = "cpu"  # ``cpu`` or ``cuda``
    most_steps: int = lanczos.MOST_STEPS  # products of T after which levels of a sector are given up

    def __post_init__(self) -> None:
        if self.basis is not None and self.basis and self.basis < self.eigenvalues + lanczos.SPARE:
            raise InputError(
                f"basis {self.basis} is too small for {self.eigenvalues} eigenvalues: "
                f"give at least {self.eigenvalues + lanczos.SPARE}, or 0 for none"
            )


class Fit(NamedTuple):
    """Vectors that fit in memory with all else that a task needs."""

    basis: int  # stored vectors, 0 for Lanczos without a basis
    fits_eigenvectors: bool = True  # without a basis, an eigenvector of each level fits, to find degenerate levels


def fit(
    sites: int, sectors: tuple[str, ...], settings: Settings, tasks: int = 1, devices: int = 1, there: int | None = None
) -> Fit:
    """Vectors that fit in memory; a layer that cannot fit at all is refused before anything is allocated.

    ``tasks`` is the number of tasks that run at the same time, ``devices`` the number of devices that share each
    vector. Each device has ``there`` bytes, by default the memory of this process.
    """
    if sites > MOST_SITES:
        raise InputError(f"{sites} sites make 2^{sites} states: choose a layer of up to {MOST_SITES} sites")
    states = 1 << (sites - (sectors != ("all",)))
    if settings.eigenvalues > states:
        raise InputError(f"{settings.eigenvalues} eigenvalues exceed the {states} states of a sector: give fewer")
    needs, levels = _Needs.of(states // devices, len(sectors), settings, tasks, devices), settings.eigenvalues
    memory = room(None if settings.device == "cpu" else 0) if there is None else there
    free = settings.basis is None or (settings.basis == 0 and states <= _TINY)
    wanted = min(lanczos.default_basis(levels) if free else settings.basis or 0, states)
    if free and needs.with_basis(wanted) > memory:
        fewer = range(wanted - 1, min(levels + _FEWEST, states) - 1, -1)
        wanted = next((basis for basis in fewer if needs.with_basis(basis) <= memory), 0)
    needed = needs.with_basis(wanted) if wanted else needs.without(1)
    if needed > memory:
        subject = f"a layer of {sites} sites, 2^{states.bit_length() - 1} amplitudes a vector,"
        kind, are = ("memory", "available") if settings.device == "cpu" else ("GPU memory", "free")
        each = f" on each of {devices} devices" if devices > 1 else ""
        mend = "choose a smaller width" + (" or fewer stored vectors (basis)" if settings.basis else "")
        raise InputError(f"{subject} needs {readable(needed)} of {kind}{each} but {readable(memory)} are {are}: {mend}")
    return Fit(wanted, needs.without(levels) <= memory)


class _Needs(NamedTuple):
    """Bytes that one device needs for its parts of all vectors and for all else."""

    vector: int  # bytes of a part, of all tasks that run at the same time
    piece: int  # bytes of a vector that are rotated at a time, likewise
    sectors: int
    levels: int  # levels of each sector
    diagonals: int  # vectors that hold the diagonal, which a GPU computes on the way
    beside: int  # bytes of all else

    @classmethod
    def of(cls, amplitudes: int, sectors: int, settings: Settings, tasks: int, devices: int) -> _Needs:
        device = settings.device
        beside = _BESIDE[device] + (buffer_bytes(device) if devices > 1 else 0)
        vector, piece = (8 * tasks * count for count in (amplitudes, min(amplitudes, ROTATED[device])))
        return cls(vector, piece, sectors, settings.eigenvalues, int(device == "cpu"), beside)

    def with_basis(self, basis: int) -> int:
        """Bytes in the last sector, with the eigenvectors of the other sectors.

        The basis has one vector more than its number. In addition there are rotated pieces of vectors and CuPy's copies
        of pieces; or a vector, which CuPy's product of two vectors takes; or, at the end, copies of the eigenvectors
        before the basis is freed.
        """
        vectors = self.levels * (self.sectors - 1) + basis + 1 + self.diagonals
        rotated = basis if self.diagonals else basis + lanczos.most_kept(self.levels, basis)
        return self.beside + self.vector * vectors + max(self.vector * self.levels, self.piece * rotated)

    def without(self, eigenvectors: int) -> int:
        return self.beside + self.vector * (VECTORS + eigenvectors + self.diagonals)


def room(gpu: int | None) -> int:
    """Bytes that long vectors of this process can have: on a GPU, or in the machine's memory where ``gpu`` is None.

    Several ranks of a machine share its memory, and its GPUs where these are fewer.
    """
    if gpu is None:
        return available_bytes() // on_node().ranks
    with on_gpu(gpu):
        return free_in_blocks() // -(-on_node().ranks // len(names()))


@dataclass(eq=False)
class Solver:
    """Finds the levels of every sector of one sample at one temperature, a cycle of Lanczos at a time."""

    model: Ising
    sample: int
    k: float
    k_time: float
    sectors: tuple[str, ...]
    settings: Settings
    room: Fit  # vectors that fit in memory
    threads: Threads
    on_product: Callable[[], None] = lambda: None
    """Called before every product with T; an exception that it raises ends the search."""
    share: Share | None = None

    def __post_init__(self) -> None:
        self._finished: list[Levels] = []
        self._begin()

    @property
    def done(self) -> bool:
        return len(self._finished) == len(self.sectors)

    def _operator(self, sector: str) -> TransferOperator:
        layer = Layer(self.model, self.sample, self.k, self.k_time, sector)
        return TransferOperator(layer, self.settings.device, self.settings.method, self.threads, self.share)

    def _begin(self) -> None:
        """Begin the next sector, whose start vectors have a plane of their own."""
        sector, s = self.sectors[len(self._finished)], self.settings
        self._iteration: ThickRestart | None = None
        if s.device == "cuda":  # else small arrays take pieces of the blocks that long vectors leave
            free_blocks()
        self._at = self._operator(sector)
        self._vectors = Vectors(self._at.layer.dimension, s.device, self.threads, self.share)
        plane = list(SECTORS).index(sector)
        self._search = Search(s.eigenvalues, s.tolerance, s.seed, plane, s.most_steps)
        if self.room.basis:
            basis = max(self.room.basis, min(s.eigenvalues + lanczos.SPARE, self._vectors.dimension))
            self._iteration = ThickRestart(self._apply, self._vectors, self._search, basis)

    def _apply(self, x: Any, out: Any) -> Any:
        self.on_product()
        return self._at.apply(x, out)

    def advance(self) -> None:
        """Carry out a cycle of Lanczos; without a stored basis, a whole sector."""
        if self._iteration is None:
            find = one_by_one if self.room.fits_eigenvectors else at_once
            self._finish(find(self._apply, self._vectors, self._search))
            return
        self._iteration.cycle()
        if self._iteration.done:
            levels = self._iteration.levels()
            levels = replace(levels, vectors=levels.vectors.copy())
            self._iteration = None  # its basis goes before the next one comes
            self._finish(levels)

    @property
    def problems(self) -> list[NotConvergedError]:
        problems = []
        for sector, levels in zip(self.sectors, self._finished, strict=False):
            where = f"sample {self.sample}, k = {self.k:.6g}, sector {sector}: "
            problem = levels.problem(self.settings.tolerance, where, self.room.basis > 0)
            problems += [problem] if problem else []
        return problems

    def _finish(self, levels: Levels) -> None:
        self._finished.append(levels)
        if not self.done:
            self._begin()

    def row(self) -> dict[str, Any]:
        """All values that the file holds for this sample and temperature; NaN for values that were not computed."""
        model, scale, dimensions = self.model, self._at.log_scale, (len(self.sectors), self.settings.eigenvalues)
        scaled = np.log(np.stack([levels.value for levels in self._finished]))
        row: dict[str, Any] = {
            "log_eigenvalue": scaled + scale,
            "residual": np.stack([levels.residual for levels in self._finished]),
            "products": np.array([levels.steps for levels in self._finished]),
            "correlation_length": np.full(dimensions, np.nan),
            "gap": np.nan,
            "free_energy_per_site": np.nan,
            "energy_per_site": np.nan,
            "sigma": np.full((dimensions[1], model.sites), np.nan),
            "sigma_sigma": np.full((dimensions[1], model.bonds), np.nan),
        }
        if self.sectors[0] != "odd":
            row |= _lengths(scaled)
            row["free_energy_per_site"] = -float(scaled[0, 0] + scale) / (model.sites * self.k)
        if self._finished[0].vectors is not None:
            vectors = {name: levels.vectors for name, levels in zip(self.sectors, self._finished, strict=True)}
            share = self._vectors.share
            row |= matrix_elements(model, vectors, fixed_spins(self._at.layer, share), share)
            if self.sectors[0] != "odd" and not np.isnan(scaled[0, 0]):
                row["energy_per_site"] = self._energy(row, vectors[self.sectors[0]][0])
        return row

    def _energy(self, row: dict[str, Any], ground: Any) -> float:
        """Energy per site of bonds in the layer, of fields, and of bonds to the next layer with coupling k_time / k."""
        model, sample = self.model, self.sample
        bonds = model.integer_couplings(sample) @ row["sigma_sigma"][0]
        fields = model.integer_fields(sample) @ row["sigma"][0] if self.sectors == ("all",) else 0.0
        opposite = {"even": "odd", "all": "all"}[self.sectors[0]]
        operator = self._at if self._at.layer.sector == opposite else self._operator(opposite)
        largest = float(self._finished[0].value[0])
        between = interlayer(operator, self._vectors, ground) / largest
        return -float((bonds + fields) * model.quantum + self.k_time / self.k * between) / model.sites

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """State from which ``advance`` goes on with a stored basis, as arrays of fixed shapes; this device's part."""
        assert self._iteration is not None  # noqa: S101  (a run without a basis is not saved)
        s, dimension = self.settings, self._vectors.length
        numbers = np.zeros((len(self.sectors), 4, s.eigenvalues))
        vectors = np.zeros((len(self.sectors) - 1, s.eigenvalues, dimension))
        for i, levels in enumerate(self._finished):
            numbers[i, :2], numbers[i, 2], numbers[i, 3] = (levels.value, levels.residual), levels.steps, levels.cause
            vectors[i] = self._vectors.numpy(levels.vectors)
        gave_up = self._iteration.gave_up or any(levels.cause for levels in self._finished)
        return self._iteration.snapshot() | {
            "most_steps": np.array([s.most_steps, gave_up]),
            "finished": np.array(len(self._finished)),
            "finished_numbers": numbers,
            "finished_vectors": vectors,
        }

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a snapshot; one that gave levels up after another number of steps is ignored."""
        most_steps, gave_up = saved["most_steps"]
        if gave_up and most_steps != self.settings.most_steps:
            return
        xp = self._vectors.xp
        self._finished = []
        for i in range(int(saved["finished"])):
            value, residual, steps, cause = saved["finished_numbers"][i]
            vectors = xp.asarray(saved["finished_vectors"][i])
            self._finished.append(Levels(value, residual, vectors, int(steps[0]), Cause(int(cause[0]))))
        if self._finished:
            self._begin()
        assert self._iteration is not None  # noqa: S101
        self._iteration.restore(saved)


def _lengths(scaled: Array) -> dict[str, Any]:
    """Correlation lengths 1 / ln(lambda_0 / lambda) in layers, infinite where rounding hides them; the gap."""
    distance = scaled[0, 0] - scaled
    distance[0, 0] = np.nan
    distance[distance < RESOLUTION] = 0.0
    with np.errstate(divide="ignore"):
        length = 1 / distance
    others = [*distance[0, 1:2], *distance[1:, 0]]
    return {"correlation_length": length, "gap": float(np.min(others)) if others else np.nan}


Saved = dict[str, npt.NDArray[Any]]
FEWEST_BITS: Final = {"cpu": 18, CUDA: 24}
"""Least bits of vectors that are worth sharing: with shorter ones devices would wait for each other."""
_SHARED: Final = ("basis", "finished_vectors")  # vectors in a snapshot; everything else is the same at all devices


class Chosen(NamedTuple):
    """Devices for one task."""

    seats: list[Seat]  # where they are, a power of two
    room: Fit  # vectors that fit in memory
    words: str  # how they share out the work, a sentence; empty where there is but one device


def choose(sites: int, sectors: tuple[str, ...], settings: Settings, device: str, tasks: int = 1) -> Chosen:
    """Choose the devices that share each vector: all that are asked for, and more where it would not fit."""
    given = seats(device)
    members = _most(len(given), sites - (sectors != ("all",)), settings.device)
    while True:
        mine = given[:members]
        try:
            return Chosen(mine, _fit(sites, sectors, settings, tasks, mine), _in_words(mine, given))
        except InputError:
            if device == CUDA and not others():
                given = seats(f"{CUDA}:all")
            if 2 * members > min(len(given), 1 << MOST_TOP) or device == "cpu":
                raise
            members *= 2


def _most(devices: int, bits: int, kind: str) -> int:
    """Number of devices, a power of two, that share vectors of 2^bits amplitudes."""
    if bits < FEWEST_BITS[kind]:
        return 1
    most = 1 << (devices.bit_length() - 1)
    return min(most, 1 << MOST_TOP) if kind == CUDA else most


def _fit(sites: int, sectors: tuple[str, ...], settings: Settings, tasks: int, mine: Sequence[Seat]) -> Fit:
    if len(mine) == 1 and mine[0].gpu is None:
        return fit(sites, sectors, settings, tasks)
    rooms = answers([seat.place.request(room, seat.gpu) for seat in mine])
    return fit(sites, sectors, settings, tasks, len(mine), min(rooms))


def _in_words(mine: Sequence[Seat], given: Sequence[Seat]) -> str:
    if len(given) == 1:
        return ""
    idle = len(given) - len(mine)
    kind = "GPU" if given[0].gpu is not None else "rank"
    leaves = f", which leaves {count(idle, kind)} idle" if idle else ""
    return (f"each vector over {len(mine)} {kind}s" if len(mine) > 1 else "none") + leaves


class SplitSolver:
    """A ``Solver`` at every device of a group, each with its part of all vectors.

    ``given`` are the arguments of ``Solver`` up to ``room``. ``on_product`` is called before every product, and its
    exception ends the task.
    """

    def __init__(
        self,
        members: Sequence[Member],
        given: tuple[Any, ...],
        threads: int | None,
        on_product: Callable[[], None] | None,
    ) -> None:
        self._members, self.done = members, False
        first = Each([on_product, *[None] * (len(members) - 1)])
        self._solvers = Each(together(members, _make, given, threads, first, on_product is not None))

    def advance(self) -> None:
        """Advance like ``Solver``; raise KeyboardInterrupt where ``on_product`` did."""
        stopped, self.done = together(self._members, _advance, self._solvers)[0]
        if stopped:
            raise KeyboardInterrupt

    @property
    def problems(self) -> list[NotConvergedError]:
        return cast("list[NotConvergedError]", together(self._members, _call, self._solvers, "problems")[0])

    def row(self) -> dict[str, Any]:
        return cast("dict[str, Any]", together(self._members, _call, self._solvers, "row")[0])

    def snapshot(self) -> Saved:
        parts: list[Saved] = together(self._members, _call, self._solvers, "snapshot")
        return parts[0] | {name: np.concatenate([part[name] for part in parts], axis=-1) for name in _SHARED}

    def restore(self, saved: Saved) -> None:
        """Go on from a snapshot of any number of devices."""
        parts = {name: np.split(saved[name], len(self._members), axis=-1) for name in _SHARED}
        own = [saved | {name: parts[name][k] for name in _SHARED} for k in range(len(self._members))]
        together(self._members, _call, self._solvers, "restore", Each(own))


class _StoppedError(Exception):
    """The task must end, at all devices."""


def _make(
    group: Group, given: tuple[Any, ...], threads: int | None, on_product: Callable[[], None] | None, watched: bool
) -> Kept:
    def before_product() -> None:
        """Ask rank 0 whether to go on; all get the same answer before the same product."""
        stop = 0
        try:
            if on_product:
                on_product()
        except KeyboardInterrupt:
            stop = 1
        if group.sum(np.array([stop]))[0]:
            raise _StoppedError

    def nothing() -> None: ...

    settings: Settings = given[5]
    pool = Threads(threads if settings.device == "cpu" else 1)
    make: Callable[..., Solver] = Solver
    return Kept(make(*given, pool, before_product if watched else nothing, Share(group)))


def _advance(group: Group, solver: Solver) -> tuple[bool, bool]:
    try:
        solver.advance()
    except _StoppedError:
        return True, False
    return False, solver.done


def _call(group: Group, solver: Solver, name: str, *arguments: Any) -> Any:
    member = getattr(solver, name)
    return member(*arguments) if callable(member) else member
