"""Shares of samples and replicas of each device, and the engines there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

from spinsim.engine.choosing import check_memory, choose, update_of
from spinsim.engine.devices import seats
from spinsim.engine.dynamics import Dynamics
from spinsim.engine.protocols import Engine
from spinsim.engine.split.engine import Part, SplitEngine
from spinsim.engine.split.replicas import REPLICAS, ReplicaSplit
from spinsim.engine.split.slabs import in_slabs, seats_of_slabs
from spinsim.engine.update import ModelSizes, Update
from spinsim.inputs.texts import count
from spinsim.model.ising import Ising
from spinsim.parallel.group import Seat
from spinsim.parallel.ranks import FIRST
from spinsim.parallel.session import Here, InThread, Kept, Place, Reply, answers, others

SHORTEST_CALL: Final = 2e5
"""Work of one GPU on a sample between host calls, in nanoseconds, above which several GPUs share the sample."""


class Work(NamedTuple):
    """Work to be shared out."""

    samples: int
    replicas: int | None  # replicas per sample; None if not known yet
    together: int  # consecutive replicas that one device must have
    call_time: float | None = None  # result of ``call_time_of``


class Request(NamedTuple):
    """Request for engines."""

    dynamics: Dynamics
    threads: int | None
    round_sweeps: int | None  # sweeps from one exchange or measurement to the next, None if not known
    replicas: int  # all replicas per sample, which determine the update


def in_words(work: Work, device: str) -> str:
    """Describe in words how much each device gets; empty for one device."""
    devices, ranks = len(seats(device)), 1 + len(others())
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
    short = device != "cpu" and _is_short(work.call_time)
    used = min(devices, work.samples * (1 if short else blocks))
    idle = f", which leaves {devices - used} of {where} idle" if used < devices else ""
    if used == work.samples:
        return f"{samples}, one each{idle}" + (": too little to do at a time for more" if short else "")
    name = "replicas" if work.together == 1 else f"blocks of {work.together} replicas"
    least, most = blocks // -(-used // work.samples), -(-blocks // (used // work.samples))
    return f"{samples} x {blocks} {name} over {where}, {_either(least, most)} each{idle}"


def call_time_of(update: Update, sites: int, replicas: int | None, round_sweeps: int | None) -> float | None:
    """Nanoseconds that one GPU needs for a sample from one call of the host to the next; None if unknown."""
    sweeps = round_sweeps if update.pace.in_one_call else 1
    return None if sweeps is None or replicas is None else sites * replicas * sweeps / update.pace.rate


def _is_short(call_time: float | None) -> bool:
    """Return True if several GPUs would take longer for a sample than one, as the host could not keep them busy."""
    return call_time is not None and call_time < SHORTEST_CALL


def _either(least: int, most: int) -> str:
    """Describe the range of numbers of items per device in words."""
    if most <= least + 1:
        return f"{least}" if least == most else f"{least} or {most}"
    return f"{least} to {most}"


def _shared_out(samples: int, seats: Sequence[Seat]) -> list[tuple[Sequence[Seat], range]]:
    """Consecutive samples for each seat; with fewer samples than seats, consecutive seats that share one sample."""
    if samples < len(seats):
        return [(seats[mine.start : mine.stop], range(k, k + 1)) for k, mine in enumerate(_cut(len(seats), samples))]
    return [([seat], mine) for seat, mine in zip(seats, _cut(samples, len(seats)), strict=True)]


def _cut(things: int, parts: int) -> list[range]:
    """Divide ``things`` items into consecutive parts of nearly equal size."""
    return [range(things * k // parts, things * (k + 1) // parts) for k in range(parts)]


def _consecutive(share: range, numbers: Sequence[int]) -> list[range]:
    """Cut a share of samples where their numbers are not consecutive, as engines count samples from a first number."""
    ends = [k for k in share[1:] if numbers[k] != numbers[k - 1] + 1]
    return [range(*both) for both in pairwise([share.start, *ends, share.stop])]


def on_all_devices(
    model: Ising, replicas: int, dynamics: Dynamics, device: str, threads: int | None, slabs: bool = True,
    round_sweeps: int | None = None,
) -> Engine:  # fmt: skip
    """Create the engine of a model on all devices of this process and of the ranks that serve it.

    If there are fewer lattices than devices and ``slabs`` is True, lattices are cut.
    """
    given = seats_of_slabs(model, replicas, device) if slabs else []
    if given:
        return in_slabs(given, model, replicas, dynamics, threads)
    there, request = seats(device), Request(dynamics, threads, round_sweeps, replicas)
    is_on_one = len(there) == 1 and model.whole is None
    return _on_seat(there[0], model, replicas, request) if is_on_one else _on(there, model, replicas, request)


def _on(seats: Sequence[Seat], model: Ising, replicas: int, request: Request) -> Engine:
    """Create the engine of a model on all seats: samples are shared out first, then replicas."""
    numbers = range(model.samples) if model.numbers is None else model.numbers.tolist()
    shares = _shared_out(model.samples, seats)
    given = [(mine, samples) for mine, share in shares for samples in _consecutive(share, numbers)]
    if len(given) == 1 and model.whole is None:
        return _of_replicas(given[0][0], model, replicas, request)
    places: list[Place] = []
    replies: list[Reply] = []
    for mine, samples in given:
        first = numbers[samples.start]
        part = (model.whole or model).of_samples(first, first + len(samples))
        own = replace(request.dynamics, first_sample=request.dynamics.first_sample + first)
        if len(mine) == 1:
            places.append(mine[0].place)
            replies.append(_request_engine(mine[0], part, replicas, request._replace(dynamics=own)))
        else:
            places.append(InThread())  # waits for all of them
            replies.append(
                places[-1].request(_kept, _of_replicas, mine, part, replicas, request._replace(dynamics=own))
            )
    each = zip(places, answers(replies), given, strict=True)
    return SplitEngine(model, replicas, [Part(place, kept, samples) for place, kept, (_, samples) in each])


def _of_replicas(seats: Sequence[Seat], model: Ising, replicas: int, request: Request) -> Engine:
    """Create the engine of a model whose replicas are shared out, in blocks that stay together."""
    update = update_of(model, replicas)
    together, on_gpus = update.together, all(seat.gpu is not None for seat in seats)
    blocks = -(-replicas // together)
    if on_gpus and _is_short(call_time_of(update, model.sites, replicas, request.round_sweeps)):
        blocks = 1  # as if all replicas stayed together
    used = seats[:blocks]
    given = list(zip(used, _cut(blocks, len(used)), strict=True))
    first = given[0][0]
    if len(given) == 1:
        return _on_seat(first, model, replicas, request)
    ranges = [range(mine.start * together, min(mine.stop * together, replicas)) for _, mine in given]
    replies = []
    for (seat, mine), own in zip(given, ranges, strict=True):
        dynamics = replace(request.dynamics, first_block=request.dynamics.first_block + mine.start)
        replies.append(_request_engine(seat, model, len(own), request._replace(dynamics=dynamics)))
    engines = zip(given, answers(replies), ranges, strict=True)
    parts = [Part(seat.place, kept, own, REPLICAS, mine) for (seat, mine), kept, own in engines]

    def make_whole() -> Part:
        any_start = request._replace(dynamics=replace(request.dynamics, start="up"))
        kept = _request_engine(first, model, replicas, any_start)()
        return Part(Here() if among_themselves else first.place, kept, range(model.samples))

    among_themselves = on_gpus and all(seat.rank == FIRST for seat, _ in given)
    return ReplicaSplit(model, replicas, request.dynamics, parts, make_whole, among_themselves)


def _on_seat(seat: Seat, model: Ising, replicas: int, request: Request) -> Engine:
    """Create the engine of a model on one seat: in this process, or as the only part of an engine of parts."""
    if seat.rank == FIRST:
        return _on_one(model, replicas, request, seat.gpu)
    kept = _request_engine(seat, model, replicas, request)()
    return SplitEngine(model, replicas, [Part(seat.place, kept, range(model.samples))])


def _request_engine(seat: Seat, model: Ising, replicas: int, request: Request) -> Reply:
    return seat.place.request(_kept, _on_one, model, replicas, request, seat.gpu)


def _on_one(model: Ising, replicas: int, request: Request, gpu: int | None) -> Engine:
    sizes = ModelSizes(model)
    update = choose(sizes, request.replicas)
    if gpu is not None:
        return update.on_cuda(model, replicas, request.dynamics, gpu)
    check_memory(sizes, replicas, update)
    return update.on_cpu(model, replicas, request.dynamics, request.threads)


def _kept(make: Callable[..., Engine], *arguments: Any) -> Kept:
    return Kept(make(*arguments))
