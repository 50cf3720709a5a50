"""Unknown names of settings: the word of this program for one of another, a misspelling, or all valid names."""

from __future__ import annotations

from inspect import signature

import pytest

import spinsim as ss
from spinsim.inputs.texts import alike, nearest
from spinsim.jobs import all_jobs
from spinsim.settings.config import tables_of

MODEL = ss.Ising(ss.square(4))
NAMES = {job.name: list(signature(getattr(ss, job.name)).parameters) for job in all_jobs()}
COUPLINGS = tables_of(next(iter(all_jobs())).config)["model"]["couplings"]
FOREIGN = {
    "num_reads": "give replicas",
    "num_sweeps": "give sweeps",
    "betas": "give temperatures, t_start or t_stop with T = 1 / beta",
    "beta_range": "give temperatures, t_start or t_stop with T = 1 / beta",
    "timeout": "give time_limit",
    "trotter": "give slices",
    "initial_states": "give start",
    "num_threads": "give threads",
    "random_seed": "give seed",
}
OTHERS = [
    "answer", "beta_schedule_type", "initial_states_generator", "interrupt_function", "num_sweeps_per_beta",
    "randomize_order", "proposal_acceptance_criteria", "h_gain", "reinit_state", "structure", "sparse", "updater",
    "label", "num_call", "vartype", "max_answers", "num_betas", "make_info_json", "return_embedding", "nsamples",
    "tabu_tenure", "scale_factor", "lower_bound_E", "elimination_order", "energy_threshold",
    "coefficient_z_first", "large_neighbourhood", "cost_fn_type", "chain_strength", "auto_scale",
    "readout_thermalization", "programming_thermalization", "reduce_intersample_correlation", "postprocess",
    "reverse_annealing", "flux_biases", "nonsense", "foo",
]  # fmt: skip
"""Arguments of dwave-samplers, OpenJij and samplers of hardware for which there is no word here."""


@pytest.mark.parametrize(("word", "hint"), FOREIGN.items())
def test_words_of_other_programs_are_known(word: str, hint: str) -> None:
    with pytest.raises(TypeError, match=rf"^anneal has no argument '{word}': {hint}$") as told:
        ss.anneal(MODEL, **{word: 3})
    assert isinstance(told.value, ss.InputError)


@pytest.mark.parametrize("job", NAMES)
def test_no_hint_misleads(job: str) -> None:
    assert {word: close for word in OTHERS if (close := alike(word, NAMES[job]))} == {}


@pytest.mark.parametrize(
    ("word", "meant"), [("sweps", "sweeps"), ("replica", "replicas"), ("temperature", "temperatures"), ("sed", "seed")]
)
def test_misspellings_are_recognised(word: str, meant: str) -> None:
    assert meant in nearest(word, NAMES["temper"])


@pytest.mark.parametrize("word", ["pm-J", "PM_J", "pm-jj", "pm_j"])
def test_hyphens_and_case_hide_no_name(word: str) -> None:
    assert alike(word, ("ferromagnetic", "pm-j", "gaussian")) == ["pm-j"]
    with pytest.raises(ss.InputError, match="did you mean 'pm-j'"):
        COUPLINGS.check(word)


def test_inverse_temperatures_are_recognised_in_any_case() -> None:
    for word in ("Betas", "BETA-RANGE", "beta_range"):
        assert nearest(word, ["temperatures", "sweeps"]) == "give temperatures with T = 1 / beta"


def test_other_calls_know_the_words_too() -> None:
    with pytest.raises(ss.InputError, match="Simulation has no argument 'num_reads': give replicas"):
        ss.Simulation(MODEL, 1.0, num_reads=3)
    with pytest.raises(ss.InputError, match=r"from_qubo has no argument 'ofset': did you mean 'offset'\?"):
        ss.Ising.from_qubo({(0, 1): 1.0}, ofset=1)
    with pytest.raises(ss.InputError, match="no argument 'num_reads': give replicas"):
        ss.anneal([MODEL, MODEL], num_reads=3)
