"""Some samples of a finished run, as a run of their own that goes on alone: its record is cut from that of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.reduction import SAMPLE_AXIS
from spinsim.engine.moves.exchange import OF_SAMPLES
from spinsim.engine.moves.move import OWN_MOVES
from spinsim.errors import InputError
from spinsim.model.ising import of_numbers
from spinsim.record import Record
from spinsim.result import load
from spinsim.run import identity
from spinsim.run.plan import Plan, Values, identities, plan_resume
from spinsim.run.recording import CHECKPOINT, checkpoint_group, checkpoint_of
from spinsim.store.contents import BEST, REDUCED
from spinsim.store.files import read, save_new, text_attributes
from spinsim.store.models import model_of, record_of_model
from spinsim.store.samples import ORIGIN, axes_of_samples, origin_of, with_numbers


def alone(record: Record, numbers: npt.NDArray[np.int64]) -> Record:
    """Return the record of some samples of a run in a file, from whose checkpoint the run of these samples goes on.

    Trajectories and sums have the bits that they have in the run of all samples.

    Args:
        record: Record of a finished run on a ladder.
        numbers: Numbers of the samples from 0, rising, (samples,).

    Raises:
        InputError: for a record without a checkpoint, and for a run with moves of a user.
    """
    attributes, state = text_attributes(record), checkpoint_of(record)
    config = identity.config_of(attributes)
    if state is None:
        raise InputError(
            "the run has no checkpoint, from which some of its samples could go on: give the file that the run wrote"
        )
    moves = [one.partition(":")[0] for one in (config.of_job.moves or "").split(",") if one]
    if others := [name for name in moves if name not in OWN_MOVES]:
        raise InputError(
            f"move {others[0]} is not spinsim's own and may depend on all samples: extend the run of all, with sweeps"
        )
    chosen = of_numbers(model_of(record), numbers)
    own, axes = with_numbers(record, numbers), axes_of_samples(record)
    for name, array in state.items():
        axis = _axis_of(name, axes)
        state[name] = array if axis is None else array.take(numbers, axis)
    own.groups["model"] = record_of_model(chosen)
    own.groups[CHECKPOINT] = checkpoint_group(state, own)
    own.groups.pop("summary", None)
    root = dict(own.attributes) | identities(config, chosen) | {ORIGIN: origin_of(attributes)}
    root.pop("history", None)
    return Record(root, own.arrays, own.groups)


def _axis_of(name: str, axes: Mapping[str, int]) -> int | None:
    """Axis of the samples in an array of a checkpoint, whose path may be in ``axes``; None without such an axis."""
    if name in axes or name in OF_SAMPLES or name.startswith(f"{BEST}/"):
        return axes.get(name, 0)
    sums = f"{REDUCED}_"
    return SAMPLE_AXIS.get(name.removeprefix(sums), 0) if name.startswith(sums) else None


def plans_of_slow(path: Path, most_sweeps: int | None, run: Values) -> Iterator[Plan[Any]]:
    """Yield plans of a run's slow samples alone, each twice as long as the one before, until none is slow.

    Each plan must be carried out before the next is asked for. Its file is ``<stem>-slow-<sweeps>.h5`` beside the
    file of the run; one that exists is completed, so that a killed call can be repeated.

    Args:
        path: File of a finished run on a ladder.
        most_sweeps: Most measured sweeps of a sample; None for no limit.
        run: Changed settings of the run, as in ``plan_resume``.

    Raises:
        InputError: for runs without walks along a ladder, unfinished runs, and as ``alone``; if no sample is slow; and
            if a file of the name of another run exists.
    """
    file = path
    while True:
        result = load(file)
        if getattr(result, "reduced", None) is None:
            raise InputError(f"{path} has no sums of walks along a ladder, by which samples are slow: extend all of it")
        if not result.finished:
            raise InputError(f"{path} is not finished: complete it first, with spinsim resume")
        slow, sweeps = result.equilibrium().slow, 2 * int(result.config[result.job]["sweeps"])
        if not len(slow) and file == path:
            raise InputError(f"{path} has no slow samples, each has run long enough: there is nothing to add")
        if not len(slow) or (most_sweeps is not None and sweeps > most_sweeps):
            return
        record, file = read(file), path.with_name(f"{path.stem}-slow-{sweeps}.h5")
        coming = alone(record, slow)
        if not file.exists():
            save_new(file, coming)
        elif any(read(file).attributes.get(name) != coming.attributes[name] for name in (ORIGIN, "model_sha256")):
            raise identity.another(file)
        yield plan_resume(file, {"sweeps": sweeps}, run)
