"""``ss.anneal``, of one model or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar, cast

from spinsim.acceptance import check_temperatures
from spinsim.engine import resolve_device
from spinsim.errors import InputError
from spinsim.inputs.shared import seeds_of
from spinsim.jobs.anneal.result import AnnealResult
from spinsim.jobs.anneal.running import AnnealPlan
from spinsim.jobs.anneal.settings import Anneal, AnnealSettings
from spinsim.jobs.calls import call_of, run_of_call, start_of_call
from spinsim.machine.threads import WORTH_A_THREAD, Threads
from spinsim.model.ising import Ising
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
        return _anneal_each(call, models, given, defaults)

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
    results: list[Any] = [None] * len(models)

    def one(k: int, seed: Any) -> None:
        try:
            results[k] = call(**arguments | {"model": models[k], "seed": seed})
        except InputError as error:
            raise InputError(f"model {k} of the list: {error}") from error

    # threads of small models would wait for each other in Python
    pool.run(partial(one, k, seed) for k, seed in enumerate(seeds_of(value("seed"), len(models))))
    return results


@of_models
@call_of(
    Anneal,
    "temperatures sweeps? replicas seed start zero_acceptance rng_rounds device threads on_updates field target "
    "out checkpoint_every progress measure moves",
)
def anneal(model: Ising, given: dict[str, Any]) -> AnnealResult:  # noqa: D417  (the settings describe themselves)
    """Anneal replicas of a model through a list of temperatures.

    Args:
        model: Model to anneal, or a list of models. Model k of a list has the seed ``seed + k``.
        temperatures: In order of use, up or down, in the unit of the couplings, shape (steps,); or text as the command
            line takes it, such as ``3:0.1:100g``. By default they follow from ``t_start``, ``t_stop``, ``steps`` and
            ``schedule``.
        start: Initial spins: ``random``, ``up``, or configurations of +1 and -1, shape (sites,), (samples, sites) or
            (samples, replicas, sites).
        field: Uniform field at each temperature, (steps,) or text. It is added to the model's own fields and is part
            of the energies. A single temperature serves all fields.
        target: Search until this value is met, one for all samples or one for each: the cut of a MaxCut instance,
            else the energy with the constant of the problem.
        measure: Observables of your own, functions by name, as ``ss.temper`` takes them; they return floats or whole
            numbers of the shape (samples, replicas), with further axes if you like.
        moves: Moves, as ``ss.temper`` takes them: ``[(move, 10)]``.

    Returns:
        Energies and magnetisations after each temperature, and the lowest states met; for a list of models a list of
        results, the same as of calls with one model each.

    Raises:
        InputError: for bad temperatures, numbers out of range, too little memory, and a file that holds another run.
        KeyboardInterrupt: on Ctrl-C; a run with ``out`` is saved first.
    """
    given["start"], spins = start_of_call(given.get("start", AnnealSettings.start), model, given.get("replicas"))
    if given.get("replicas") is None and spins is not None and spins.shape[1] > 1:
        given["replicas"] = spins.shape[1]
    found: AnnealResult = run_of_call(Anneal, AnnealPlan, model, given, spins, temperatures=check_temperatures)
    return found
