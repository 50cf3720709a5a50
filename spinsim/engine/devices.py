"""Devices that a run may request, and the devices that it gets."""

from __future__ import annotations

from typing import Final

from spinsim.errors import InputError
from spinsim.inputs.texts import check_gpus
from spinsim.machine.memory import make_current
from spinsim.parallel.group import Seat
from spinsim.parallel.session import Here, InThread, answers, on_node, others

DEVICES: Final = ("auto", "cpu", "cuda", "gpu")
CUDA: Final = "cuda"


def resolve_device(device: str, gpus: str | None = None) -> str:
    """Resolve the device of a run: ``cpu``, ``cuda`` or, if GPUs are selected, a form such as ``cuda:all``.

    ``gpu`` means ``cuda``, and so does ``auto`` if a GPU can be used.

    Args:
        device: One of ``DEVICES``, or an earlier result of this function.
        gpus: Selection of GPUs, as ``check_gpus`` takes it.

    Raises:
        InputError: for an unknown device, for ``cuda`` without a usable GPU (it says what is missing), and for GPUs
            that do not exist.
    """
    kind, _, asked = device.partition(":")
    if kind not in DEVICES or (asked and kind != CUDA):
        raise InputError(f"device {device!r} is unknown: choose one of {', '.join(DEVICES)}")
    gpus = asked or gpus
    if kind == "cpu":
        if gpus:
            raise InputError(f"gpus {gpus} have no effect on the cpu: leave them out")
        return kind
    from spinsim.cuda.device import why_not

    missing = why_not()
    if missing is None:
        if not gpus:
            return CUDA
        gpu_numbers(f"{CUDA}:{gpus}")
        return f"{CUDA}:{gpus}"
    if kind != "auto" or gpus:
        raise InputError(missing)
    return "cpu"


def seats(device: str) -> list[Seat]:
    """All devices of this process and of the ranks that serve it, in order, each with its own thread."""
    asked = answers([place.request(_gpus_of_rank, device) for place in others()])
    mine = _gpus(device)
    places = [Seat(InThread(gpu) if len(mine) > 1 else Here(), gpu) for gpu in mine]
    for place, gpus in zip(others(), asked, strict=True):
        places += [Seat(place.thread(1 + k, gpu) if len(gpus) > 1 else place, gpu) for k, gpu in enumerate(gpus)]
    return places


def _gpus(device: str) -> list[int | None]:
    return [None] if device == "cpu" else [*gpu_numbers(device)]


def _gpus_of_rank(device: str) -> list[int | None]:
    """GPUs of a serving rank; its only thread gets the only GPU."""
    gpus = _gpus(device)
    if len(gpus) == 1 and gpus[0] is not None:
        make_current(gpus[0])
    return gpus


def gpu_numbers(device: str) -> list[int]:
    """Numbers of this process's GPUs among ``cuda`` or, for example, ``cuda:all``; ranks of one node divide them.

    Raises:
        InputError: for GPUs that do not exist.
    """
    from spinsim.cuda.device import names

    there, gpus = range(len(names())), device.partition(":")[2] or "1"
    check_gpus(gpus)
    if "," not in gpus:
        mine = on_node().share(there)
        if gpus == "all":
            return mine
        if int(gpus) > len(mine):
            owner = "this machine" if on_node().ranks == 1 else f"each of the {on_node().ranks} ranks of this machine"
            raise InputError(f"gpus {gpus} are more than the {len(mine)} of {owner}: give fewer, or all")
        return mine[: int(gpus)]
    chosen = [int(number) for number in gpus.rstrip(",").split(",")]
    missing = [number for number in chosen if number not in there]
    if missing:
        raise InputError(f"GPU {missing[0]} is not there: this machine has the numbers 0 to {len(there) - 1}")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"gpus {gpus} name one twice: give each once")
    return on_node().share(chosen)
