"""Protocols out of equilibrium: stages of temperature and field, and replicas that go through them.

``T=0.7 for 1000000; T=0.5 for 1000; T=0.7 h=0.1 for 1000`` has three stages, each with its number of sweeps.
``T=2:0.5`` is a ramp over the stage. A stage without h keeps the field at the end of the stage before, at first 0.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinsim.acceptance import check_temperatures, inverse
from spinsim.errors import InputError
from spinsim.inputs.numbers import geometric, linear, read_grid
from spinsim.sampling.portions import OnUpdates, Pause, Portions, updates_a_sweep

RAMP_STEPS: Final = 1000  # most steps of a ramp: each makes new acceptance thresholds and, of a field, a new engine
MOST_SWEEPS: Final = 10**12
_STAGE: Final = re.compile(r"T=([^\s:]+)(?::(\S+))?(?:\s+h=([^\s:]+)(?::(\S+))?)?\s+for\s+(\S+)")


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
    for part in filter(None, map(str.strip, text.split(";"))):
        match, start, field = _STAGE.fullmatch(part), legs[-1].stop if legs else 0, legs[-1].field if legs else 0.0
        t, t_end, h, h_end, length = map(_number, match.groups() if match else [""] * 5)
        t_end, h = t if t_end is None else t_end, field if h is None else h
        h_end = h if h_end is None else h_end
        if not np.isfinite([t, t_end, h, h_end]).all() or not 1 <= length <= MOST_SWEEPS or length % 1:
            raise InputError(f"stage {part!r} of the protocol cannot be read: write such as 'T=2:0.5 h=0.1 for 1000'")
        check_temperatures([t, t_end], zero=True)
        steps = min(int(length), RAMP_STEPS) if (t, h) != (t_end, h_end) else 1
        for k, (now, in_field) in enumerate(zip(linear(t, t_end, steps), linear(h, h_end, steps), strict=True), 1):
            legs.append(Leg(start + int(length) * k // steps, float(now), float(in_field), k == steps))
    if not legs or legs[-1].stop > MOST_SWEEPS:
        raise InputError(f"protocol {text!r} has no stage, or more than 10^12 sweeps: give such as 'T=0.7 for 1000'")
    return legs


def _number(text: str | None) -> Any:
    """Return a number, NaN for another text and None for none."""
    with contextlib.suppress(ValueError):
        return None if text is None else float(text)
    return np.nan


class Schedule(NamedTuple):
    """When conditions change, configurations are kept and replicas are measured, in sweeps from the beginning."""

    legs: list[Leg]
    waiting: npt.NDArray[np.int64]  # waiting times, (waiting times,)
    measured: npt.NDArray[np.int64]  # from 0 to the end of the protocol, (measurements,)


def read_schedule(protocol: str, waiting: str | None, times: str | None) -> Schedule:
    """Return the schedule of a protocol, with measurements ``times`` after its stages begin and waiting times end.

    By default there are eight per decade, even numbers, because a spin in no local field flips at nearly every sweep.
    """
    legs, kept, given = read_protocol(protocol), _sweeps("waiting", waiting), _sweeps("times", times)
    last, decades = legs[-1].stop, len(str(legs[-1].stop))
    for name, values in ("waiting", kept), ("times", given):
        if (values > last).any():
            raise InputError(f"{name} {values.max()} is beyond the {last} sweeps of the protocol: give a smaller one")
    usual = 2 * np.unique(np.rint(geometric(1.0, 10.0**decades, 8 * decades + 1) / 2)).astype(np.int64)
    origins = np.concatenate([[0], [leg.stop for leg in legs if leg.is_last], kept]).astype(np.int64)
    later = np.add.outer(origins, usual if times is None else given).ravel()
    measured = np.unique(np.concatenate([origins, later]))
    return Schedule(legs, kept, measured[measured <= last])


def _sweeps(name: str, text: str | None) -> npt.NDArray[np.int64]:
    """Return the different numbers of sweeps in a text, each rounded, from the smallest."""
    values = np.empty(0) if text is None else read_grid(name, text, any_sign=True)
    if (values < 0).any() or (values > MOST_SWEEPS).any():
        raise InputError(f"{name} {text!r} is not all from 0 to 10^12 sweeps: give numbers such as 10,100,1000")
    return np.unique(np.rint(values)).astype(np.int64)


def evolving(
    engine: Any, legs: Sequence[Leg], times: Sequence[int], on_updates: OnUpdates, pause: Pause
) -> Iterator[Leg | None]:
    """Take replicas through the rest of a protocol; yield the present leg at each of ``times``, and None at pauses.

    ``engine`` acts as an ``InField``. ``times`` are sweeps from the beginning of the protocol, rising, not below those
    done. ``on_updates`` and ``pause`` are as in ``annealing``.
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
