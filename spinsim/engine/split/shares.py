"""Which device gets which samples and replicas, and the engines there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from spinsim.engine.choosing import check_memory, choose, update_of
from spinsim.engine.devices import gpu_numbers
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.protocols import Engine
from spinsim.engine.split.engine import SplitEngine
from spinsim.engine.split.parts import Part, ReplicaPart
from spinsim.engine.split.replicas import ReplicaSplit
from spinsim.engine.split.slabs import in_slabs, seats_of_slabs
from spinsim.engine.update import OfModel
from spinsim.inputs.texts import count
from spinsim.mesh.places import Here, InThread, Kept, Place, Reply, answers
from spinsim.mesh.session import others
from spinsim.model.ising import Ising

SHORTEST_ROUND: Final = 6e8
"""Updates of one sample between two exchanges, 200 microseconds of an H200, from which on GPUs share out its ladder."""


class Seat(NamedTuple):
    """A place with devices.

    Attributes:
        place: As given.
        devices: How many it has.
        gpu: Number of its one GPU, None where it is the CPU or those of another rank.
    """

    place: Place
    devices: int
    gpu: int | None = None


class Share(NamedTuple):
    """Samples of some seats; several seats have one sample, whose replicas they share out."""

    seats: Sequence[Seat]
    samples: range


class Work(NamedTuple):
    """What there is to share out.

    Attributes:
        samples: Disorder realisations.
        replicas: Of each; None where that is not known yet.
        together: Consecutive ones that one device must have.
        round_updates: Updates of one sample between two exchanges; None where there are none, or this is not known.
    """

    samples: int
    replicas: int | None
    together: int
    round_updates: int | None = None


class Asked(NamedTuple):
    """How engines are to be made.

    Attributes:
        dynamics: How replicas move.
        device: As ``resolve_device`` returns it.
        threads: CPU threads, None for all.
        round_sweeps: Sweeps between exchanges on a ladder, None where there is none, or this is not known.
    """

    dynamics: Dynamics
    device: str
    threads: int | None
    round_sweeps: int | None


def in_words(work: Work, device: str) -> str:
    """How much each device gets, in a sentence; empty where there is one device."""
    devices, ranks = number_of_devices(device), 1 + len(others())
    if devices == 1:
        return ""
    of_ranks = f" of {ranks} ranks" if ranks > 1 else ""
    where, samples = (
        f"{devices} GPUs{of_ranks}" if device != "cpu" else f"{devices} ranks",
        count(work.samples, "sample"),
    )
    if work.samples >= devices:
        return f"{samples} over {where}, {_either(work.samples // devices, -(-work.samples // devices))} each"
    if work.replicas is None:
        return f"{samples} over {where}, which share out replicas"
    blocks = -(-work.replicas // work.together)
    short = _is_short(work.round_updates, device)
    used = min(devices, work.samples * (1 if short else blocks))
    idle = f", which leaves {devices - used} of {where} idle" if used < devices else ""
    if used == work.samples:
        return f"{samples}, one each{idle}" + (": rounds between exchanges are too short for more" if short else "")
    name = "replicas" if work.together == 1 else f"blocks of {work.together} replicas"
    least, most = blocks // -(-used // work.samples), -(-blocks // (used // work.samples))
    return f"{samples} x {blocks} {name} over {where}, {_either(least, most)} each{idle}"


def number_of_devices(device: str) -> int:
    """Devices of this process and of the ranks that serve it."""
    return sum(seat.devices for seat in _all_seats(device))


def _is_short(round_updates: int | None, device: str) -> bool:
    """Whether GPUs that share out a ladder would take longer than one."""
    return device != "cpu" and round_updates is not None and round_updates < SHORTEST_ROUND


def _either(least: int, most: int) -> str:
    """From how many to how many things a device gets."""
    if most <= least + 1:
        return f"{least}" if least == most else f"{least} or {most}"
    return f"{least} to {most}"


def _all_seats(device: str) -> list[Seat]:
    """The devices of this process and the ranks that serve it."""
    asked = answers([place.ask(_devices, device) for place in others()])
    return [*_own(device), *(Seat(*each) for each in zip(others(), asked, strict=True))]


def _own(device: str) -> list[Seat]:
    """The devices of this process."""
    if device == "cpu":
        return [Seat(Here(), 1)]
    numbers = gpu_numbers(device)
    return [Seat(InThread() if len(numbers) > 1 else Here(), 1, number) for number in numbers]


def _devices(device: str) -> int:
    return 1 if device == "cpu" else len(gpu_numbers(device))


def _shared_out(samples: int, seats: Sequence[Seat]) -> list[Share]:
    """Consecutive samples for each seat; where there are fewer samples, consecutive seats for each sample."""
    if samples < len(seats):
        ends = [len(seats) * k // samples for k in range(samples + 1)]
        return [Share(seats[ends[k] : ends[k + 1]], range(k, k + 1)) for k in range(samples)]
    each = zip(seats, _consecutive(samples, seats), strict=True)
    return [Share([seat], mine) for seat, mine in each if mine]


def _consecutive(things: int, seats: Sequence[Seat]) -> list[range]:
    """Which of so many things each seat gets, as equally for each of its devices as it goes."""
    total, before, found = sum(seat.devices for seat in seats), 0, []
    for seat in seats:
        after = before + seat.devices
        found.append(range(things * before // total, things * after // total))
        before = after
    return found


def on_all_devices(
    model: Ising,
    replicas: int,
    dynamics: Dynamics,
    device: str,
    threads: int | None,
    slabs: bool = True,
    round_sweeps: int | None = None,
) -> Engine:
    """The engine of a model on all devices of this process and of the ranks that serve it.

    Where there are fewer lattices than devices and ``slabs`` allows it, lattices are cut.
    """
    given = seats_of_slabs(model, replicas, device) if slabs else []
    if given:
        return in_slabs(given, model, replicas, dynamics, threads)
    return _on(_all_seats(device), model, replicas, Asked(dynamics, device, threads, round_sweeps))


def _on(seats: Sequence[Seat], model: Ising, replicas: int, asked: Asked) -> Engine:
    """The engine of a model on all seats: samples are shared out first, then replicas."""
    given = _shared_out(model.samples, seats)
    if len(given) == 1:
        return _of_replicas(given[0].seats, model, replicas, asked)
    places: list[Place] = []
    replies: list[Reply] = []
    for mine, samples in given:
        part = model.of_samples(samples.start, samples.stop)
        own = replace(asked.dynamics, first_sample=asked.dynamics.first_sample + samples.start)
        if len(mine) == 1:
            places.append(mine[0].place)
            replies.append(_ask_for_engine(mine[0], part, replicas, asked._replace(dynamics=own)))
        else:
            places.append(InThread())  # which waits for all of them
            replies.append(places[-1].ask(_kept_of_replicas, mine, part, replicas, asked._replace(dynamics=own)))
    each = zip(places, answers(replies), given, strict=True)
    return SplitEngine(model, replicas, [Part(place, kept, share.samples) for place, kept, share in each])


def _of_replicas(seats: Sequence[Seat], model: Ising, replicas: int, asked: Asked) -> Engine:
    """The engine of a model whose replicas are shared out, in blocks of those that stay together."""
    together = update_of(model).together
    blocks = -(-replicas // together)
    if asked.round_sweeps is not None and _is_short(model.sites * replicas * asked.round_sweeps, asked.device):
        blocks = 1  # as if they all stayed together
    given = [each for each in zip(seats, _consecutive(blocks, seats[:blocks]), strict=False) if each[1]]
    first = given[0][0]
    if len(given) == 1:
        return _on_seat(first, model, replicas, asked)
    ranges = [range(mine.start * together, min(mine.stop * together, replicas)) for _, mine in given]
    replies = []
    for (seat, mine), own in zip(given, ranges, strict=True):
        dynamics = replace(asked.dynamics, first_block=asked.dynamics.first_block + mine.start)
        replies.append(_ask_for_engine(seat, model, len(own), asked._replace(dynamics=dynamics)))
    engines = zip(given, answers(replies), ranges, strict=True)
    parts = [ReplicaPart(seat.place, kept, own, mine) for (seat, mine), kept, own in engines]

    def make_whole() -> Part:
        any_start = asked._replace(dynamics=replace(asked.dynamics, start="up"))
        kept = first.place.ask(_kept_on_one_device, model, replicas, any_start, first.gpu)()
        return Part(Here() if on_gpus else first.place, kept, range(model.samples))

    on_gpus = all(seat.gpu is not None for seat, _ in given)
    return ReplicaSplit(model, replicas, asked.dynamics, parts, make_whole, on_gpus)


def _on_seat(seat: Seat, model: Ising, replicas: int, asked: Asked) -> Engine:
    """The engine of a model on one seat: of this process itself, or as the only part of one."""
    if seat.place not in others():
        return _on_one(model, replicas, asked, seat.gpu)
    kept = _ask_for_engine(seat, model, replicas, asked)()
    return SplitEngine(model, replicas, [Part(seat.place, kept, range(model.samples))])


def _ask_for_engine(seat: Seat, model: Ising, replicas: int, asked: Asked) -> Reply:
    """Have an engine made that stays at a seat, on all of its devices."""
    if seat.place in others():
        return seat.place.ask(_kept_on_all, model, replicas, asked)
    return seat.place.ask(_kept_on_one_device, model, replicas, asked, seat.gpu)


def _on_one(model: Ising, replicas: int, asked: Asked, gpu: int | None) -> Engine:
    """The engine of a model on one device.

    Raises:
        InputError: where it does not fit.
    """
    outline = OfModel(model)
    update = choose(outline)
    if gpu is not None:
        return update.on_cuda(model, replicas, asked.dynamics, gpu)
    check_memory(outline, replicas)
    return update.on_cpu(model, replicas, asked.dynamics, asked.threads)


def _kept_on_one_device(model: Ising, replicas: int, asked: Asked, gpu: int | None) -> Kept:
    """An engine on a GPU, or on the first device that a process has been asked for."""
    first = _own(asked.device)[0].gpu if gpu is None else gpu
    return Kept(_on_one(model, replicas, asked, first))


def _kept_on_all(model: Ising, replicas: int, asked: Asked) -> Kept:
    return Kept(_on(_own(asked.device), model, replicas, asked))


def _kept_of_replicas(seats: Sequence[Seat], model: Ising, replicas: int, asked: Asked) -> Kept:
    return Kept(_of_replicas(seats, model, replicas, asked))
