"""Some samples of a finished run, as a run of their own that goes on alone: its record is cut from that of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinsim.engine.measuring.reduction import SAMPLE_AXIS
from spinsim.engine.moves.exchange import OF_SAMPLES
from spinsim.engine.moves.move import OWN_MOVES
from spinsim.errors import InputError, argument
from spinsim.model.ising import of_numbers
from spinsim.pooling import axes_of_samples, with_numbers
from spinsim.record import Record
from spinsim.result import load
from spinsim.run import identity
from spinsim.run.own_observables import Functions
from spinsim.run.plan import Plan, Values, identities, plan_resume
from spinsim.run.recording import CHECKPOINT, checkpoint_group, checkpoint_of
from spinsim.settings.config import Config
from spinsim.settings.shared import OF_MACHINE
from spinsim.store.contents import BEST, REDUCED
from spinsim.store.files import read, save_new, text_attributes
from spinsim.store.models import model_of, record_of_model


def alone(record: Record, numbers: npt.NDArray[np.int64]) -> Record:
    """Return the record of some samples of a run on a ladder, whose numbers rise from 0; the run can go on from it.

    Trajectories and sums have the bits that they have in the run of all samples. InputError for a record without a
    checkpoint, and for a run with moves of a user.
    """
    state, config = checkpoint_of(record), identity.config_of(text_attributes(record))
    if state is None:
        raise InputError("a run without a checkpoint cannot go on with some samples: give the file that the run wrote")
    _check_moves(config)
    chosen, axes = of_numbers(model_of(record), numbers), axes_of_samples(record)
    axes |= dict.fromkeys((*OF_SAMPLES, *(name for name in state if name.startswith(f"{BEST}/"))), 0)
    sums = [name.partition("_")[2] for name in state if name.startswith(f"{REDUCED}_")]
    axes |= {f"{REDUCED}_{name}": SAMPLE_AXIS.get(name, 0) for name in sums}
    own = with_numbers(record, numbers)
    state = {name: array.take(numbers, axes[name]) if name in axes else array for name, array in state.items()}
    own.groups |= {"model": record_of_model(chosen), CHECKPOINT: checkpoint_group(state, own)}
    own.groups.pop("summary", None)
    root = {name: value for name, value in own.attributes.items() if name != "history"}
    return Record(root | identities(config, chosen), own.arrays, own.groups)


def _check_moves(config: Config) -> None:
    moves = [one.partition(":")[0] for one in (config.of_job.moves or "").split(",") if one]
    if others := [name for name in moves if name not in OWN_MOVES]:
        raise InputError(f"move {others[0]} is a user's own and may need all samples: extend all of them, with sweeps")


def plans_until_equilibrated(plan: Plan[Any]) -> Iterator[Plan[Any]]:
    """Return plans of the slow samples of a plan's run alone, which may be asked for once the run is finished.

    A plan whose samples could not go on alone is refused now, before it is carried out.
    """
    _check_moves(plan.config)
    if plan.of_job.searches or plan.of_job.places < 2:
        raise InputError(f"{argument('until_equilibrated', True)} needs walks along a ladder, not a search")
    run = {name: getattr(plan.config.run, name) for name in OF_MACHINE}
    return plans_of_slow(plan.path, None, run, plan.measure, none_is_error=False)


def plans_of_slow(
    path: Path, most: int | None, run: Values, measure: Functions | None = None, none_is_error: bool = True
) -> Iterator[Plan[Any]]:
    """Yield plans of a finished run's slow samples alone, each of twice the sweeps of the one before, up to ``most``.

    Each must be carried out before the next is asked for. Its file is ``<stem>-slow-<sweeps>.h5``; one that exists is
    completed, so that a killed call can be repeated. ``run`` and ``measure`` are as in ``plan_resume``. InputError as
    ``alone``, for runs that have no walks or are not finished, and, unless excused, if there is nothing to do.
    """
    file = path
    while True:
        result = load(file)
        if getattr(result, "reduced", None) is None or not result.finished:
            raise InputError(f"{path} is no finished run with walks along a ladder, which tell slow samples: extend it")
        slow, sweeps = result.equilibrium().slow, 2 * int(result.config[result.job]["sweeps"])
        if not len(slow) or sweeps > (most or sweeps):
            if file == path and none_is_error:
                there, limit = "no slow samples", ""
                if len(slow):
                    there, limit = (
                        f"{len(slow)} slow samples, which go on for {sweeps} sweeps first",
                        f" within sweeps {most}",
                    )
                raise InputError(f"{path} has {there}: there is nothing to do{limit}")
            return
        coming, file = alone(read(file), slow), path.with_name(f"{path.stem}-slow-{sweeps}.h5")
        if not file.exists():
            save_new(file, coming)
        elif coming.attributes["config_sha256"] not in identity.lengths(text_attributes(read(file))):
            raise identity.another(file)
        yield plan_resume(file, {"sweeps": sweeps}, run, measure=measure)
