"""``ss.anneal`` of several models: a result for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar, cast

from spinsim.engine import resolve_device
from spinsim.errors import InputError
from spinsim.inputs.seeds import seeds_of
from spinsim.machine.threads import WORTH_A_THREAD, Threads
from spinsim.packing import LANES

Call = TypeVar("Call", bound=Callable[..., Any])


def of_models(call: Call) -> Call:
    """Let a call whose first argument is a model also take a list of them, and return a list of results.

    Each result has the bits of a call with its model alone. Model k of the list, from 0 on, has the seed ``seed + k``,
    modulo 2^64. Large models are annealed side by side on the CPU, each on one thread; small ones, and those on a GPU,
    one after the other.
    """
    parameters = signature(call)

    @wraps(call)
    def of_one_or_many(*args: Any, **settings: Any) -> Any:
        models = args[0] if args else settings.get("model")
        if not isinstance(models, list | tuple):
            return call(*args, **settings)
        given = parameters.bind(*args, **settings).arguments
        defaults = {name: one.default for name, one in parameters.parameters.items()}
        return _anneal_each(call, models, given | given.pop("settings", {}), defaults)

    return cast("Call", of_one_or_many)


def _are_worth_threads(models: Sequence[Any], replicas: Any, sweeps: Any) -> bool:
    """Return True if a temperature of each model takes much longer in compiled code than in Python."""
    sizes = [getattr(model, "sites", 0) * getattr(model, "samples", 0) for model in models]
    try:
        return len(models) > 1 and min(sizes) * (replicas or LANES) * (sweeps or 1) >= WORTH_A_THREAD * LANES
    except TypeError:  # settings that the call refuses
        return False


def _anneal_each(
    call: Call, models: list[Any] | tuple[Any, ...], arguments: dict[str, Any], defaults: dict[str, Any]
) -> list[Any]:
    """Anneal each model; arguments that are not given stay so, as some say no more than that they are left out."""

    def value(name: str) -> Any:
        return arguments.get(name, defaults.get(name))

    if value("out") is not None or value("solution") is not None:
        raise InputError("out and solution name a file for one model: leave them out, and save each result")
    on_cpu = resolve_device(value("device"), value("gpus")) == "cpu"
    side_by_side = on_cpu and _are_worth_threads(models, value("replicas"), value("sweeps"))
    pool = Threads(value("threads") if side_by_side else 1)
    if side_by_side:
        arguments = arguments | {"threads": 1}
    found: list[Any] = [None] * len(models)

    def one(k: int, seed: Any) -> None:
        try:
            found[k] = call(**arguments | {"model": models[k], "seed": seed})
        except InputError as error:
            raise InputError(f"model {k} of the list: {error}") from error

    # threads of small models would wait for each other in Python
    pool.run(partial(one, k, seed) for k, seed in enumerate(seeds_of(value("seed"), len(models))))
    return found
