"""Response of samples to a change: chaos in temperature and in couplings, and interfaces by antiperiodic boundaries.

X(T, T') = [<q_{T,T'}^2>] / sqrt([<q_T^2>] [<q_T'^2>]) is 1 where the same states dominate at both. Copies are always
different ones, so that runs with the same seeds stay independent. An interface has the free energy of antiperiodic less
periodic boundaries of the same samples, by multiple histograms.

Sources: F. Ritort, Phys. Rev. B 50, 6844 (1994); M. Ney-Nifle, A. P. Young, J. Phys. A 30, 5311 (1997); H. G.
Katzgraber, F. Krzakala, PRL 98, 017201 (2007); interfaces J. R. Banavar, M. Cieplak, Phys. Rev. Lett. 48, 832 (1982).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinsim.analysis.jackknife import Jackknife
from spinsim.analysis.reweighted import free_energies
from spinsim.analysis.runs import Array
from spinsim.analysis.space.entries import Entries, Measured, entries_of, saved_run
from spinsim.analysis.space.estimates import Estimates, Panel
from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.model.disorder import antiperiodic as with_antiperiodic
from spinsim.result import Run, as_result


@public
def chaos(run: Run, other: Run | None = None) -> Estimates:
    """Chaos parameter between all temperatures of a run or, for bond chaos, of a run and one of perturbed couplings.

    Args:
        run: A tempering run with two copies and ``save_configurations``, or its file.
        other: A run with as many samples and sites, such as one of ``ss.perturbed``; by default the run itself.

    Returns:
        ``overlap_squared`` [<q^2>] and ``parameter`` X, (temperatures, other temperatures), with jackknife errors;
        ``arrays`` has ``temperature`` and ``other_temperature``.

    Raises:
        InputError: for a run that has saved no configurations, one copy, and runs of different sizes.
    """
    (result, saved), (second, more) = saved_run(run, 2), saved_run(run if other is None else other, 2)
    if (result.model.samples, result.model.sites) != (second.model.samples, second.model.sites):
        raise InputError(f"samples of {result.model.name} and {second.model.name} are not the same: give equal sizes")
    averages, others = entries_of(result, [saved, more], _measure, ("own",)), second.temperature
    found = averages.estimate(lambda cross, a, b: cross / np.sqrt(a[:, None] * b[0]), "cross", "own", "others")
    printed = {f"X({temperature:.4g})": found[:, k] for k, temperature in enumerate(others)}
    arrays = {"temperature": result.temperature, "other_temperature": others}
    estimates = {"overlap_squared": averages.mean("cross"), "parameter": found}
    panels = [Panel(others, found, ("temperature $T'$", "$X(T, T')$"))]
    return Estimates("chaos X(T, T')" + " between two runs" * (other is not None), arrays, estimates, printed, panels)


def _measure(spins: npt.NDArray[np.int8], others: npt.NDArray[np.int8]) -> Measured:
    """Mean squares of overlaps of different copies (copies, temperatures, sites) of one sample, of both and of each."""
    a, b = spins.astype(np.float32), others.astype(np.float32)

    def squares(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> Array:
        pairs = [(k, n) for k in range(len(one)) for n in range(len(other)) if k != n]
        overlaps = [one[k] @ other[n].T / one.shape[2] for k, n in pairs]
        return np.asarray(np.mean(np.square(overlaps), axis=0, dtype=np.float64))

    own, other = squares(a, a).diagonal(), squares(b, b).diagonal()
    return {"own": own, "cross": squares(a, b), "others": np.tile(other, (len(own), 1))}


@public
def interface(periodic: Run, antiperiodic: Run) -> Estimates:
    """Free energy of an interface, from runs with periodic and with antiperiodic boundaries.

    Args:
        periodic: A tempering run whose ladder is hot enough to reach infinite temperature by reweighting.
        antiperiodic: Run of ``ss.antiperiodic`` of the same model on the same ladder.

    Returns:
        With dF = F(antiperiodic) - F(periodic) in the unit of the couplings, (temperatures,) each: ``mean`` [dF],
        ``size`` [|dF|], the stiffness of a glass, and ``spread`` [dF^2]^(1/2), with errors over samples or, for one
        sample, of both runs. ``arrays`` has ``temperature`` and ``difference``, dF (samples, temperatures).

    Raises:
        InputError: for runs of other models or ladders, and ladders that are not hot enough.
    """
    runs = as_result(periodic), as_result(antiperiodic)
    (one, other), ladders = [run.model for run in runs], [run.temperature for run in runs]
    axes = range(0 if one.lattice is None else one.lattice.dimension)
    made = [with_antiperiodic(one, axis) for axis in axes if one.lattice.shape[axis] > 1]
    same = np.array_equal(*ladders) and np.array_equal(one.fields, other.fields)
    if not same or not any(np.array_equal(model.couplings, other.couplings) for model in made):
        raise InputError(
            f"{other.name} is not {one.name} with one antiperiodic boundary on the same ladder: give the periodic run "
            "first and one of ss.antiperiodic of its model"
        )
    (first, first_error), (second, second_error) = map(free_energies, runs)
    difference = second - first
    entries = Entries({"dF": difference, "|dF|": np.abs(difference), "dF^2": difference**2}, np.ones(len(ladders[0])))
    mean = entries.mean("dF")
    if len(difference) == 1:
        mean = Jackknife(mean.value, np.hypot(first_error, second_error)[0], mean.bias)
    found = {"mean": mean, "size": entries.mean("|dF|"), "spread": entries.estimate(np.sqrt, "dF^2")}
    printed = dict(zip(("[dF]", "[|dF|]", "[dF^2]^1/2"), found.values(), strict=True))
    labels = [(f"${head.replace('1/2', '{1/2}')}$", one[None]) for head, one in printed.items()]
    panels = [Panel(ladders[0], one, ("temperature $T$", label), ("mean over samples",)) for label, one in labels]
    arrays = {"temperature": ladders[0], "difference": difference}
    return Estimates("free energies of interfaces", arrays, found, printed, panels)
