"""Which device gets which samples, and the engines there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from spinsim.engine.choosing import check_memory, choose
from spinsim.engine.devices import gpu_numbers
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.protocols import Engine
from spinsim.engine.split.engine import SplitEngine
from spinsim.engine.split.parts import Part
from spinsim.engine.update import OfModel
from spinsim.inputs.texts import count
from spinsim.mesh.places import Here, InThread, Kept, Place, answers
from spinsim.mesh.session import others
from spinsim.model.ising import Ising


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
    """Samples that a seat gets."""

    seat: Seat
    samples: range


def shares(samples: int, device: str) -> list[Share]:
    """Samples of all devices of this process and of the ranks that serve it: consecutive ones, as equally as it goes.

    Args:
        samples: How many there are.
        device: As ``resolve_device`` returns it.
    """
    return _shared_out(samples, _all_seats(device))


def in_words(samples: int, device: str) -> str:
    """How many samples each device gets, in a sentence; empty where there is one device."""
    seats = _all_seats(device)
    devices, ranks = sum(seat.devices for seat in seats), 1 + len(others())
    if devices == 1:
        return ""
    of_ranks = f" of {ranks} ranks" if ranks > 1 else ""
    where = f"{devices} GPUs{of_ranks}" if device != "cpu" else f"{devices} ranks"
    if samples < devices:
        return f"{count(samples, 'sample')}, one each, which leaves {devices - samples} of {where} idle"
    least, most = samples // devices, -(-samples // devices)
    return f"{samples} samples over {where}, {least if least == most else f'{least} or {most}'} each"


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
    total, before, found = sum(seat.devices for seat in seats), 0, []
    for seat in seats:
        after = before + seat.devices
        mine = range(samples * before // total, samples * after // total)
        found += [Share(seat, mine)] if mine else []
        before = after
    return found


def on_all_devices(model: Ising, replicas: int, dynamics: Dynamics, device: str, threads: int | None) -> Engine:
    """The engine of a model on all devices of this process and of the ranks that serve it."""
    return _on(shares(model.samples, device), model, replicas, dynamics, device, threads)


def _on(
    given: list[Share], model: Ising, replicas: int, dynamics: Dynamics, device: str, threads: int | None
) -> Engine:
    if len(given) == 1 and isinstance(given[0].seat.place, Here):
        return _on_one(model, replicas, dynamics, given[0].seat.gpu, threads)
    replies = []
    for (place, _, gpu), mine in given:
        part = model.of_samples(mine.start, mine.stop)
        own = replace(dynamics, first_sample=dynamics.first_sample + mine.start)
        if place in others():
            replies.append(place.ask(_kept_on_all, part, replicas, own, device, threads))
        else:
            replies.append(place.ask(_kept_on_one, part, replicas, own, gpu, threads))
    engines = answers(replies)
    parts = [Part(each.seat.place, kept, each.samples) for each, kept in zip(given, engines, strict=True)]
    return SplitEngine(model, replicas, parts)


def _on_one(model: Ising, replicas: int, dynamics: Dynamics, gpu: int | None, threads: int | None) -> Engine:
    """The engine of a model on one device.

    Raises:
        InputError: where it does not fit.
    """
    outline = OfModel(model)
    update = choose(outline)
    if gpu is not None:
        return update.on_cuda(model, replicas, dynamics, gpu)
    check_memory(outline, replicas)
    return update.on_cpu(model, replicas, dynamics, threads)


def _kept_on_one(model: Ising, replicas: int, dynamics: Dynamics, gpu: int | None, threads: int | None) -> Kept:
    return Kept(_on_one(model, replicas, dynamics, gpu, threads))


def _kept_on_all(model: Ising, replicas: int, dynamics: Dynamics, device: str, threads: int | None) -> Kept:
    return Kept(_on(_shared_out(model.samples, _own(device)), model, replicas, dynamics, device, threads))
