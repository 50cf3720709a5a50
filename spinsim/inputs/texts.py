"""Display of users' texts in messages, and rules of settings that jobs share: seeds and GPUs.

An omitted seed has a fixed default: 1 for the dynamics, 0 for the disorder. The same call therefore gives the same
bits. ``seed=None`` in Python, ``--seed random`` on the command line and ``seed = "random"`` in files draw 64 bits from
the operating system. Runs store the seed that they used: it is in ``result.config``, in the file and in
``spinsim show``.
"""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Collection, Sequence
from operator import index
from typing import Any, Final

from spinsim.errors import InputError

_OTHER_MODELS: Final = ("potts", "clock", "xy", "heisenberg", "blume-capel")
DYNAMICS: Final = (
    *("checkerboard", "typewriter", "random-sequential"),
    *("heat-bath", "typewriter-heat-bath", "checkerboard-heat-bath"),
)
"""Names of dynamics of single spins (engine/moves/single_spin.py); heat-bath is in random order."""
_SHOWN: Final = 40  # largest length of a value in a message
WIDTH: Final = 80  # width of a terminal, in characters


def printable(text: str) -> str:
    """Return a text on one line, with terminal control characters and unencodable characters escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value: Any) -> str:
    """Return a value as Python shows it, on one line and shortened, for messages."""
    try:
        text = printable(repr(value))
    except Exception:
        text = f"of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def quoted(word: str | os.PathLike[str]) -> str:
    """Quote a word for the shell, for lines that users copy; $'...' if it has unprintable characters."""
    text = os.fspath(word)
    if text.isprintable():
        return shlex.quote(text)
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in "'\\" else f"\\x{b:02x}" for b in os.fsencode(text))
    return f"$'{''.join(plain)}'"


def beyond_ising(word: object) -> str:
    """Return a sentence on the scope of the program if a word names a model of other variables, else an empty text."""
    if str(word).lower() not in _OTHER_MODELS:
        return ""
    return "spinsim simulates Ising variables, s = +1 or -1, so take another program for Potts, XY or Heisenberg models"


def count(number: int, name: str) -> str:
    """Return a number with its noun, such as "1 sample", "4 samples" or "2 copies"."""
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number} {name if number == 1 else plural}"


def interval(number: int, name: str) -> str:
    """Return an interval in words, such as "every sweep" or "every 10 sweeps"."""
    return f"every {name if number == 1 else count(number, name)}"


def wrapped(sentence: str, head: str = "") -> list[str]:
    return textwrap.wrap(head + sentence, WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False)


class Described:
    """Base class of objects that are displayed in one line, and in a notebook as a small table."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._summary.values())})"

    def _repr_html_(self) -> str:
        import html

        facts = ((html.escape(name), html.escape(value)) for name, value in self._summary.items())
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in facts)
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"

    @property
    def _summary(self) -> dict[str, str]:
        raise NotImplementedError


T_START: Final = 1.5  # first temperature, in units of the root mean square local field
T_STOP: Final = 0.05  # last temperature, in units of the root mean square local field
HOT_ACCEPTANCE: Final = 0.15
"""Mean acceptance of the flips that cost energy at local minima, which sets the first temperature of a graph."""
COLD_SHARE: Final = 1 / 64
"""Mean thermal energy above a local minimum at a graph's last temperature, in units of how far minima lie above the
best."""
_FORM: Final = re.compile(r"all|0*[1-9][0-9]{0,4}|([0-9]{1,5},)+([0-9]{1,5})?")
RANDOM: Final = "random"


def drawn_seed() -> int:
    import secrets  # loading it takes a tenth of the program's start

    return secrets.randbits(64)


def as_seed(seed: int | None) -> int:
    return drawn_seed() if seed is None else seed


def seeds_of(seed: Any, count: int) -> list[Any]:
    """Return the seeds of several problems: ``seed + k``, modulo 2^64; None draws the first one.

    An invalid seed is returned unchanged; the caller refuses it.
    """
    seed = as_seed(seed)
    try:
        first = index(seed)
    except TypeError:
        return [seed] * count
    if isinstance(seed, bool) or not 0 <= first < 2**64:
        return [seed] * count
    return [(first + k) % 2**64 for k in range(count)]


def check_gpus(gpus: str) -> None:
    """Refuse a text that names no GPUs: allowed are ``all``, a count, or numbers with commas, also a trailing one."""
    if not _FORM.fullmatch(gpus):
        raise InputError(f"gpus {gpus!r} cannot be read: give all, a number of GPUs such as 2, or a list such as 0,2")


_SURE: Final = 0.75  # similarity above which one name counts as a misspelling of the other
_OF_LADDER: Final = "temperatures temperature t_start t_stop reweight"
_WISHES: Final = {
    wish: names.split()
    for wishes, names in (
        ("model", "lattice layer size width couplings"),
        ("dim dimension graph", "lattice layer"),
        ("j coupling bonds", "couplings couplings_along"),
        ("disorder", "couplings disorder_seed"),
        ("p", "bond_fraction"),
        ("h magnetic_field", "field"),
        ("t temp temps temperature temperatures temperature_schedule", _OF_LADDER),
        ("tmin tmax t_min t_max t_range beta_range", _OF_LADDER),
        ("beta", f"beta {_OF_LADDER}"),
        ("betas beta_schedule inverse_temperature beta_min beta_max", _OF_LADDER),
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
"""Names of settings in other programs and in physics, with our settings for each; only those of a call are shown."""
_INVERSE: Final = ["beta", "betas", "beta_range", "beta_schedule", "inverse_temperature", "beta_min", "beta_max"]


def serving(wish: str, valid: Collection[str]) -> list[str]:
    """Return the valid names that correspond to a word of other programs."""
    return [name for name in _WISHES.get(_plain(wish), ()) if name in valid]


def from_inverse(word: str, names: Collection[str]) -> str:
    """Return the conversion to temperatures if a word asks for inverse temperatures, else an empty text."""
    return " with T = 1 / beta" if _plain(word) in _INVERSE and "beta" not in names else ""


def alike(word: str, valid: Collection[str], most: int = 1) -> list[str]:
    """Return the valid names of which a word is most likely a misspelling."""
    from difflib import get_close_matches  # slow to load

    names = {_plain(name): name for name in valid}
    return [names[close] for close in get_close_matches(_plain(word), names, most, _SURE)]


def nearest(word: str, valid: Collection[str]) -> str:
    """Return a hint at the likely meaning of an unknown name, or all valid names."""
    if names := serving(word, valid):
        return f"give {either(tuple(names))}{from_inverse(word, names)}"
    close = alike(word, valid)
    return f"did you mean {close[0]!r}?" if close else f"valid names are {', '.join(valid)}"


def either(values: Sequence[Any]) -> str:
    """Join words for a sentence, such as "one, two or three"."""
    return enumerated(values, "or")


def enumerated(values: Sequence[Any], conjunction: str) -> str:
    """Join words for a sentence, with a conjunction before the last."""
    *most, last = map(str, values)
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _plain(word: str) -> str:
    """Return a word in lower case with underscores, for comparing names."""
    return word.lower().replace("-", "_")
