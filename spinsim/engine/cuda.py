"""What CUDA engines share: a device, a stream of its own, timing by device events."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from spinsim.cuda.device import names, require_memory
from spinsim.cuda.launch import Launch
from spinsim.cuda.records import round_keys
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.ladder.cuda import Tempering
from spinsim.engine.ladder.ladder import NO_LADDER, Exchange, check_ladder
from spinsim.engine.measuring.cuda import Measurements, Measuring
from spinsim.engine.measuring.cuda_comparison import Comparison
from spinsim.engine.measuring.cuda_held import KEEPING, HeldStates
from spinsim.engine.measuring.cuda_totals import Totals, TotalsInTurn
from spinsim.engine.measuring.sums import Observables
from spinsim.engine.protocols import Counts, LadderMeasurement
from spinsim.engine.snapshots import exchange_of, snapshot_of
from spinsim.errors import InputError
from spinsim.model.ising import Ising

GRID_LIMIT: Final = 65535  # of a grid's y and z extents
START_THREADS: Final = 128
AT_ONCE: Final = 5  # measurements; more would make launches no cheaper to speak of
MEASURED_BYTES: Final = 2**28  # of these measurements' copies of the state, and of their numbers


class CudaEngine(ABC):
    """The part of an ``Engine`` that depends on the device alone.

    Attributes:
        device: Number of the device.
        stream: Where all its work is queued.
        half_sweep: Half-sweeps done.
        at_once: Measurements that are best made in succession, of the present ladder.
    """

    colours: int
    at_once = 1

    def __init__(self, model: Ising, replicas: int, dynamics: Dynamics, device: int) -> None:
        import cupy

        self.model, self.replicas, self.dynamics, self.device = model, replicas, dynamics, device
        self.device_name = names()[device]
        self.half_sweep = 0
        self._round_keys = round_keys(dynamics.seed)
        self._tempering: Tempering | None = None
        with cupy.cuda.Device(device):
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self._totals = TotalsInTurn(self.stream)
        weakref.finalize(self, self.stream.synchronize).atexit = False  # before its memory is free for others

    @contextmanager
    def _here(self) -> Iterator[None]:
        """CuPy's calls go to this engine's device and stream."""
        import cupy

        with cupy.cuda.Device(self.device), self.stream:
            yield

    def _random_start(self, state: Any, lanes: Any, order: Any = None, sample: int = 0) -> None:
        """Fill ``state`` (samples, blocks, sites, 2), its first sample number ``sample``, with random spins.

        ``order`` holds the site at each place, None where a site is its own; ``lanes`` (blocks, 2) are those in use.
        """
        samples, blocks, sites, _ = state.shape
        Launch(self.device, "metropolis/start.cu", f"random_start<{self.dynamics.rng_rounds}>", {
            "state": state, "lanes": lanes, "order": np.uint64(0) if order is None else order,
            "sites": np.uint32(sites), "first_sample": np.uint32(sample), "first_block": np.uint32(0),
            "key": self._round_keys,
        })(self.stream, (-(-sites // START_THREADS), blocks, samples), START_THREADS)  # fmt: skip

    @abstractmethod
    def sweep(self, count: int) -> None:
        """Attempt every spin of every replica ``count`` times."""

    def timed_sweep(self, count: int) -> float:
        """Sweep and return the seconds between two events on the device."""
        import cupy

        with self._here():
            began, ended = cupy.cuda.Event(), cupy.cuda.Event()
            began.record()
            self.sweep(count)
            ended.record()
            ended.synchronize()
            return float(cupy.cuda.get_elapsed_time(began, ended)) / 1e3

    def set_ladder(self, beta: npt.ArrayLike, copies: int) -> None:
        """Give each copy of each sample a ladder of inverse temperatures, as engine/ladder/ladder.py says."""
        ladder = check_ladder(beta, copies, self.replicas)
        with self._here():
            self._tempering = Tempering(
                self.device, self.stream, ladder, ladder.steps(self.model), self._sums_shape,
                self._observables.energy,
                self.dynamics.rng_rounds, self._round_keys,
            )  # fmt: skip
            self._measuring: dict[bool, Measuring] = {}
            self._held = HeldStates(self.device, self.stream)
            self.at_once = self._most_at_once(self._tempering)
            self._prepare_ladder(self._tempering)
            self._lay_tables()

    @abstractmethod
    def _prepare_ladder(self, tempering: Tempering) -> None:
        """Make room for tables of each sample and what launches need."""

    @abstractmethod
    def _lay_tables(self) -> None:
        """Queue what gives replicas the temperatures of their places."""

    def _on_ladder(self) -> Tempering:
        if self._tempering is None:
            raise InputError(NO_LADDER)
        return self._tempering

    def temper(self, rounds: int, sweeps: int) -> None:
        """``rounds`` times: sweep ``sweeps`` times, then try to exchange neighbouring temperatures."""
        tempering = self._on_ladder()
        with self._here():
            for _ in range(rounds):
                self.sweep(sweeps)
                self._add_sums(tempering.sums)
                tempering.exchange()
                self._lay_tables()

    def begin_exchange(self) -> Callable[[], Exchange]:
        """Ask for the present state of the exchange; the function returned waits for it."""
        with self._here():
            return self._on_ladder().begin_exchange()

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that a later ``restore`` needs; the same arrays as the CPU engine's."""
        tempering = self._tempering
        with self._here():
            exchange, rounds = (None, 0) if tempering is None else (tempering.begin_exchange()(), tempering.round)
            return snapshot_of(self._words_of_state(), self.half_sweep, rounds, exchange)

    def restore(self, saved: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go back to a ``snapshot``."""
        with self._here():
            self._set_words(np.asarray(saved["spins"], np.uint64))
            self.half_sweep = int(saved["half_sweep"])
            if self._tempering is not None:
                self._tempering.restore(exchange_of(saved), int(saved["round"]))
                self._lay_tables()
            self.stream.synchronize()

    @abstractmethod
    def _words_of_state(self) -> npt.NDArray[np.uint64]:
        """The state in packed words, as the CPU engine has it."""

    @abstractmethod
    def _set_words(self, words: npt.NDArray[np.uint64]) -> None:
        """Set the state."""

    def _most_at_once(self, tempering: Tempering) -> int:
        """Measurements that are best made in succession: copies of the state and frames take memory."""
        model, pairs = self.model, len(tempering.copies) * tempering.ladder.temperatures
        frame = model.samples * (self.replicas + pairs) * (40 + 8 * (model.lattice.dimension if model.lattice else 0))
        return max(1, min(AT_ONCE, MEASURED_BYTES // max(frame, int(self._present().nbytes))))

    def _measuring_of(self, full: bool) -> Measuring:
        tempering = self._on_ladder()
        if full not in self._measuring:
            comparison, stride = self._compare(tempering, full), int(np.prod(self._sums_shape[2:]))
            self._measuring[full] = Measuring(
                self.stream, tempering, comparison, self._observables, stride, self._held, self.at_once
            )
        return self._measuring[full]

    def prepare_measurements(self, kept: int, full: bool = True) -> None:
        """Refuse measurements that have no room, where ``kept`` of them are there at a time."""
        with self._here():
            measuring = self._measuring_of(full)
            require_memory(self.device, kept * self.at_once * int(self._present().nbytes), KEEPING)
            measuring.prepare(self._present())

    def begin_measurement(self, full: bool = True) -> Callable[[], LadderMeasurement]:
        """Ask for what is measured of every copy at every temperature; the function returned waits for it."""
        with self._here():
            measuring = self._measuring_of(full)
            measurements = measuring.open(self._present(), 1)
            self._write_measurement(measuring, measurements, 0)
            (begun,) = measuring.close(measurements, self._spins_in)
            return begun

    def temper_measured(
        self, count: int, rounds: int, sweeps: int, full: bool = True
    ) -> list[Callable[[], LadderMeasurement]]:
        """``count`` times: ``temper``, then ``begin_measurement``."""
        begun: list[Callable[[], LadderMeasurement]] = []
        with self._here():
            measuring = self._measuring_of(full)
            while len(begun) < count:
                measurements = measuring.open(self._present(), min(self.at_once, count - len(begun)))
                self._temper_into(measuring, measurements, rounds, sweeps)
                begun += measuring.close(measurements, self._spins_in)
        return begun

    def _temper_into(self, measuring: Measuring, measurements: Measurements, rounds: int, sweeps: int) -> None:
        for k in range(measurements.count):
            self.temper(rounds, sweeps)
            self._write_measurement(measuring, measurements, k)

    def _write_measurement(self, measuring: Measuring, measurements: Measurements, number: int) -> None:
        counted = self._take_sums()
        measuring.write(measurements, number, self._present(), counted)
        self._totals.give_back(counted)

    @abstractmethod
    def _compare(self, tempering: Tempering, full: bool) -> Comparison:
        """What compares copies of the present ladder."""

    _sums_shape: tuple[int, ...]
    """Of the two sums that counting kernels make, (2, samples, ...), the replicas in order."""

    _observables: Observables
    """From these sums."""

    @abstractmethod
    def _add_sums(self, to: tuple[int, ...]) -> None:
        """Queue adding the present sums to those at addresses, in the order of ``_observables.sums``."""

    def _take_counted(self) -> Totals | None:
        """The sums of the present state where a kernel has left them besides, else None."""
        return None

    def _take_sums(self) -> Totals:
        """The sums of the present state."""
        totals = self._take_counted()
        if totals is None:
            totals = self._totals.take(self._sums_shape)
            self._add_sums(totals.parts)
        return totals

    def begin_counts(self) -> Callable[[], Counts]:
        """Ask for the present energies and magnetisations; the function returned waits for them."""
        with self._here():
            fetched = self._totals.fetch(self._take_sums())
        names = self._observables.sums

        def counts() -> Counts:
            sums = fetched().reshape(len(names), self.model.samples, -1)[..., : self.replicas]
            return self._observables.counts(dict(zip(names, sums, strict=True)))

        return counts

    def counts(self) -> Counts:
        """Energy and magnetisation of every replica."""
        return self.begin_counts()()

    def spins(self, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration, shape (sites,), +1 or -1."""
        with self._here():
            return self._spins_in(self._present(), sample, replica)

    @abstractmethod
    def _present(self) -> Any:
        """The state on the device."""

    @abstractmethod
    def _spins_in(self, state: Any, sample: int, replica: int) -> npt.NDArray[np.int8]:
        """One configuration of a state, fetched by the present stream."""

    def wait(self) -> None:
        """Return when the device is done."""
        self.stream.synchronize()


def check_grid(samples: int, blocks: int) -> None:
    """Refuse more samples or blocks of replicas than a launch can have."""
    if max(samples, blocks) > GRID_LIMIT:
        raise InputError(f"{max(samples, blocks)} samples or blocks of replicas exceed a GPU grid: split the run")
