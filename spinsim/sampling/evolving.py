"""Protocols out of equilibrium: stages of temperature and field, and replicas that go through them.

``T=0.7 for 1000000; T=0.5 for 1000; T=0.7 h=0.1 for 1000`` has three stages, each with its number of sweeps.
``T=2:0.5`` is a ramp over the stage. A stage without h keeps the field at the end of the stage before, at first 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures, inverse
from spinsim.errors import InputError
from spinsim.inputs.numbers import linear
from spinsim.sampling.portions import OnUpdates, Pause, Portions, updates_a_sweep

RAMP_STEPS: Final = 1000
"""Most steps of a ramp: each step makes new acceptance thresholds and, of a field, a new engine."""
MOST_SWEEPS: Final = 10**12
_SUCH_AS: Final = "write stages such as 'T=0.7 for 1000; T=2:0.5 h=0.1 for 500'"


class Leg(NamedTuple):
    """Sweeps under constant conditions: a stage of a protocol, or a step of a ramp."""

    stop: int  # number of sweeps from the beginning of the protocol to the end of the leg
    temperature: float
    field: float  # added to the model's own
    is_last: bool = True  # of its stage


def read_protocol(text: str) -> list[Leg]:
    """Return the legs of a protocol in the notation above: a ramp has one for each sweep, at most ``RAMP_STEPS``.

    Raises:
        InputError: for a stage that cannot be read, temperatures below 0, and too few or too many sweeps.
    """
    legs: list[Leg] = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        named, _, length = part.rpartition(" for ")
        pairs = [one.partition("=") for one in named.split()]
        values = {name: number for name, _, number in pairs}
        if len(values) < len(pairs) or not {"T"} <= values.keys() <= {"T", "h"}:
            raise InputError(f"stage {part!r} of the protocol has no T, or something besides T and h: {_SUCH_AS}")
        try:
            temperature, field = _ends(values["T"]), _ends(values.get("h", repr(legs[-1].field if legs else 0.0)))
            sweeps = float(length)
        except ValueError as error:
            raise InputError(f"stage {part!r} of the protocol cannot be read: {_SUCH_AS}") from error
        check_temperatures(temperature, zero=True)
        if not np.isfinite(field).all():
            raise InputError(f"stage {part!r} of the protocol has a field that is not finite: {_SUCH_AS}")
        if not (1 <= sweeps <= MOST_SWEEPS and sweeps == round(sweeps)):
            raise InputError(f"stage {part!r} of the protocol has {sweeps:g} sweeps: give a whole number up to 10^12")
        changes = temperature[0] != temperature[1] or field[0] != field[1]
        start, steps = legs[-1].stop if legs else 0, min(int(sweeps), RAMP_STEPS) if changes else 1
        for k, (t, h) in enumerate(zip(linear(*temperature, steps), linear(*field, steps), strict=True), 1):
            legs.append(Leg(start + int(sweeps) * k // steps, float(t), float(h), k == steps))
    if not legs or legs[-1].stop > MOST_SWEEPS:
        raise InputError(f"protocol {text!r} has no sweep, or more than 10^12: {_SUCH_AS}")
    return legs


def _ends(text: str) -> tuple[float, float]:
    first, _, last = text.partition(":")
    return float(first), float(last or first)


def measuring_times(
    legs: Sequence[Leg], waiting: npt.NDArray[np.int64], times: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    """Return the sweeps, from 0 on, after which replicas are measured.

    These are ``times`` after the beginning of each stage and after each waiting time, and the ends of all of them.
    By default there are eight per decade. All are even, because a spin in no local field flips at nearly every sweep.
    """
    if times is None:
        times = 2 * np.unique(np.rint(10 ** (np.arange(8 * np.log10(legs[-1].stop) + 1) / 8) / 2)).astype(np.int64)
    origins = np.concatenate([[0], [leg.stop for leg in legs if leg.is_last], waiting])
    found = np.unique(np.concatenate([origins, np.add.outer(origins, times).ravel()])).astype(np.int64)
    return found[found <= legs[-1].stop]


def evolving(
    engine: Any, legs: Sequence[Leg], times: Sequence[int], on_updates: OnUpdates, pause: Pause
) -> Iterator[Leg | None]:
    """Take replicas through the rest of a protocol; yield the present leg at each of ``times``, and None at pauses.

    Args:
        engine: An ``InField``, in its initial state or restored to a state of such a run; changed in place.
        legs: All legs of the protocol.
        times: Numbers of sweeps from the beginning of the protocol, rising, not below those done.
        on_updates: Called at intervals with the number of spin updates since the last call; first with 0.
        pause: Called at intervals; if it returns True, None is yielded, and the engine may then be saved.
    """
    stops, updates, portions = [leg.stop for leg in legs], updates_a_sweep(engine), Portions(engine)
    done, present = engine.half_sweep // engine.colours, None
    on_updates(0)
    for time in times:
        while True:
            leg = legs[bisect_left(stops, done + (done < time))]  # of the next sweep, at last of the one before
            if leg is not present:
                present = leg
                engine.set_field(leg.field)
                engine.set_beta(float(inverse(leg.temperature, engine.model.quantum)))
            if done == time:
                break
            count = min(portions.sweeps, leg.stop - done, time - done)
            portions.begin()
            engine.sweep(count)
            engine.wait()
            portions.end()
            done += count
            on_updates(count * updates)
            if done < time and pause():
                yield None
        yield present
        if pause():
            yield None
