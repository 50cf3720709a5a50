"""What the file of an annealing run holds, and what it must hold to be read."""

from __future__ import annotations

from typing import Final

import h5py
import numpy as np
import numpy.typing as npt

from spinsim.jobs.anneal.search import ANNEALS, SUMS, layout_with_those_of
from spinsim.run.own import REPLICAS, own_in_file, with_series
from spinsim.store.forms import Form, group_of, length_of
from spinsim.store.layout import BITS, BYTE, ENERGY, MEASUREMENTS, STAGGERED, TEMPERATURE, Layout, Series, Sizes


def anneal_layout(
    samples: int,
    replicas: int,
    in_field: bool = False,
    start: npt.NDArray[np.int8] | None = None,
    staggered: bool = False,
    quantum: bool = False,
    states_of: int = 0,
    populations: int = 0,
) -> Layout:
    """Returns a layout with a row after each temperature of the schedule, or each transverse field.

    Args:
        samples: Of the model.
        replicas: Of each.
        in_field: Whether a uniform field changes with the temperature.
        start: Initial configurations where they were given.
        staggered: Whether staggered magnetisations are measured.
        quantum: Whether it is a quantum anneal: energies, sums of spins and best states are those of best slices.
        states_of: Sites of the lowest states of every replica, 0 where they are not kept.
        populations: Of each sample, 0 where none are resampled.
    """
    axes = "sample", "replica"
    of_sublattices = (Series("staggered_magnetization", axes, np.int64, STAGGERED),) if staggered else ()
    fields = (Series("field", (), np.float64, "uniform field, added to the model's own", ENERGY),) if in_field else ()
    of_slices: tuple[Series, ...] = ()
    if quantum:
        fields = (Series("gamma", (), np.float64, "transverse field", ENERGY),)
        mean = "total energy, mean over the slices of each replica"
        of_slices = (Series("mean_slice_energy", axes, np.float64, mean, ENERGY),)
    scales = {"sample": np.arange(samples), "replica": np.arange(replicas)}
    families: tuple[Series, ...] = ()
    if populations:
        scales["population"] = np.arange(populations)
        each = "sample", "population"
        families = (
            Series("family", axes, np.int32, "replica at infinite temperature from which each descends"),
            Series("population_free_energy", each, np.float64, "estimate of the free energy -T ln Z", ENERGY),
            Series("parents", each, np.int64, "replicas that were copied when the temperature changed to this one"),
        )
    states: tuple[Series, ...] = ()
    if states_of:
        scales[BYTE] = np.arange(-(-states_of // 8))
        states = (
            Series("best_states", (*axes, BYTE), np.uint8, f"states of lowest energy met, of each replica, {BITS}"),
        )
    return Layout(
        scales,
        {},
        (
            Series("step", (), np.int64, "temperature step"),
            Series("temperature", (), np.float64, "temperature", TEMPERATURE),
            *fields,
            Series("energy", axes, np.float64, "total energy" + " of the best slice" * quantum, ENERGY),
            *of_slices,
            Series("magnetization", axes, np.int64, "sum of spins"),
            *of_sublattices,
            *families,
        ),
        sums=states,
        start=start,
    )


def _layout_of(file: h5py.File, sizes: Sizes) -> tuple[Layout, int]:
    """Returns the layout that a file should have, by its own axes, and the replicas of each sample."""
    group = group_of(file, MEASUREMENTS)
    replicas, staggered = length_of(group, "replica"), "staggered_magnetization" in group
    in_field, quantum = "field" in group, "gamma" in group
    states_of = sizes.sites if "best_states" in group else 0
    populations = length_of(group, "population") if "family" in group else 0
    layout = anneal_layout(sizes.samples, replicas, in_field, None, staggered, quantum, states_of, populations)
    return layout_with_those_of(file, with_series(layout, *own_in_file(file, REPLICAS))), replicas


STATES: Final = {"best_states": f"{MEASUREMENTS}/best_states"}
FORM: Final = Form(
    planned={"steps": (int,)},
    groups=(MEASUREMENTS, ANNEALS),
    layout=_layout_of,
    has_best=True,
    sums={**STATES, **SUMS},
)
