"""Names that a call, a command or a table of settings lacks, and what their users may mean by them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, Final

_SURE: Final = 0.75  # likeness of two names above which the one is taken for the other
_WISHES: Final = {
    wish: names.split()
    for wishes, names in (
        ("model", "lattice layer size width couplings"),
        ("dim dimension graph", "lattice layer"),
        ("j coupling bonds", "couplings couplings_along"),
        ("disorder", "couplings disorder_seed"),
        ("p", "bond_fraction"),
        ("h magnetic_field", "field"),
        (
            "t temp temps temperature temperatures temperature_schedule",
            "temperatures temperature t_start t_stop reweight",
        ),
        ("tmin tmax t_min t_max t_range beta_range", "temperatures temperature t_start t_stop reweight"),
        ("beta", "beta temperatures temperature t_start t_stop reweight"),
        (
            "betas beta_schedule inverse_temperature beta_min beta_max",
            "temperatures temperature t_start t_stop reweight",
        ),
        ("beta_schedule_type schedule_type", "schedule"),
        ("gamma transverse_field", "gamma gamma_start gamma_stop"),
        ("l n length side sites size", "size width"),
        ("width", "width size"),
        ("pbc periodic open", "boundary"),
        ("steps num_steps n_steps num_betas", "steps sweeps"),
        ("num_sweeps n_sweeps num_sweeps_per_beta mcs iterations n_iter", "sweeps"),
        ("measurements", "sweeps measure_every"),
        ("reads num_reads num_samples_per_model copies n_chains num_chains", "replicas"),
        ("realizations realisations num_samples", "samples replicas"),
        ("burn_in warmup n_warmup equilibration therm", "thermalize"),
        ("save_every", "save_configurations"),
        ("trotter num_trotter trotter_slices n_trotter", "slices"),
        ("initial_state initial_states init_state state", "start"),
        ("output o folder", "out"),
        ("figure", "what"),
        ("rng random_seed rng_seed random_state", "seed"),
        ("gpu cuda", "device gpus"),
        ("cpu", "device threads"),
        ("n_jobs workers num_workers num_threads processes", "threads"),
        ("timeout time max_time maximum_time", "time_limit"),
        ("target_energy", "target"),
    )
    for wish in wishes.split()
}
"""Settings by the names that other programs, or physicists, have for them; those that a call has are named."""
_INVERSE: Final = ["beta", "betas", "beta_range", "beta_schedule", "inverse_temperature", "beta_min", "beta_max"]


def serving(wish: str, valid: Collection[str]) -> list[str]:
    """Return which of the valid names stand for a word of other programs."""
    return [name for name in _WISHES.get(_plain(wish), ()) if name in valid]


def from_inverse(word: str, names: Collection[str]) -> str:
    """Return how temperatures follow where a word asks for their inverses, else nothing."""
    return " with T = 1 / beta" if _plain(word) in _INVERSE and "beta" not in names else ""


def alike(word: str, valid: Collection[str], most: int = 1) -> list[str]:
    """Return the valid names that a word is surely a misspelling of."""
    names = {_plain(name): name for name in valid}
    return [names[close] for close in get_close_matches(_plain(word), names, most, _SURE)]


def nearest(word: str, valid: Collection[str]) -> str:
    """Return a hint at the likely meaning of an unknown name, or all valid ones."""
    if names := serving(word, valid):
        return f"give {either(tuple(names))}{from_inverse(word, names)}"
    close = alike(word, valid)
    return f"did you mean {close[0]!r}?" if close else f"valid names are {', '.join(valid)}"


def either(values: Sequence[Any]) -> str:
    """Return words as a sentence has them, such as "one, two or three"."""
    return enumerated(values, "or")


def enumerated(values: Sequence[Any], conjunction: str) -> str:
    """Return words as a sentence has them, the last behind a conjunction."""
    *most, last = map(str, values)
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _plain(word: str) -> str:
    """Return a word in lower case with underscores, in which names are compared."""
    return word.lower().replace("-", "_")
