"""Sentences on what the command-line parser refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from spinsim.inputs.texts import beyond_ising

_MODEL: Final = ("lattice", "layer", "size", "width", "couplings")
_TEMPERATURES: Final = ("temperatures", "temperature", "t-start", "t-stop", "reweight")
_COPIES: Final = ("replicas",)
_SAMPLES: Final = ("samples",)
_THERMALIZE: Final = ("thermalize",)
_WISHES: Final = {
    "model": _MODEL,
    "dim": ("lattice", "layer"),
    "dimension": ("lattice", "layer"),
    "graph": ("lattice", "layer"),
    "j": ("couplings", "couplings-along"),
    "coupling": ("couplings", "couplings-along"),
    "bonds": ("couplings", "couplings-along"),
    "disorder": ("couplings", "disorder-seed"),
    "p": ("bond-fraction",),
    "h": ("field",),
    "magnetic-field": ("field",),
    "t": _TEMPERATURES,
    "temp": _TEMPERATURES,
    "temps": _TEMPERATURES,
    "temperature": _TEMPERATURES,
    "temperatures": _TEMPERATURES,
    "tmin": _TEMPERATURES,
    "tmax": _TEMPERATURES,
    "t-min": _TEMPERATURES,
    "t-max": _TEMPERATURES,
    "beta": ("beta", *_TEMPERATURES),
    "betas": ("beta", *_TEMPERATURES),
    "beta-range": _TEMPERATURES,
    "gamma": ("gamma", "gamma-start", "gamma-stop"),
    "transverse-field": ("gamma", "gamma-start", "gamma-stop"),
    "l": ("size", "width"),
    "n": ("size", "width"),
    "length": ("size", "width"),
    "side": ("size", "width"),
    "sites": ("size", "width"),
    "size": ("size", "width"),
    "width": ("width", "size"),
    "pbc": ("boundary",),
    "periodic": ("boundary",),
    "open": ("boundary",),
    "steps": ("steps", "sweeps"),
    "num-sweeps": ("sweeps",),
    "mcs": ("sweeps",),
    "iterations": ("sweeps",),
    "measurements": ("sweeps", "measure-every"),
    "reads": _COPIES,
    "num-reads": _COPIES,
    "copies": _COPIES,
    "realizations": _SAMPLES,
    "realisations": _SAMPLES,
    "num-samples": _SAMPLES,
    "burn-in": _THERMALIZE,
    "warmup": _THERMALIZE,
    "equilibration": _THERMALIZE,
    "therm": _THERMALIZE,
    "output": ("out",),
    "o": ("out",),
    "folder": ("out",),
    "figure": ("what",),
    "gpu": ("device", "gpus"),
    "cuda": ("device", "gpus"),
    "cpu": ("device", "threads"),
    "timeout": ("time-limit",),
}
"""Flags by what other programs, or physicists, call them; those that a command has are named."""
_INVERSE: Final = ("beta", "betas", "beta-range")
_MOST_CLOSE: Final = 2
_ALIKE: Final = 0.7


def usage_sentence(error: Any) -> str:
    """Returns one sentence of what the parser says in one or two, with the place where its rule is explained."""
    message = " ".join(error.format_message().split()).replace(". Did you", ", did you").rstrip(".?")
    context = getattr(error, "ctx", None)
    value = re.match(r"Invalid value for '(?P<flag>--[\w-]+)'[^:]*: (?P<rule>.*)", message)
    if value:
        return f"{value['flag']} {value['rule']}"
    wish = getattr(error, "option_name", None)
    if wish is not None and context is not None:
        flags = [name for one in context.command.params for name in one.opts if name.startswith("--")]
        message = f"No such option: {wish}{_instead(wish, flags)}"
    word = re.search("'([^']*)'", message)
    if word and (scope := beyond_ising(word[1])):
        return f"{message}: {scope}"
    return f"{message}: see '{context.command_path if context else 'spinsim'} --help'"


def _instead(wish: str, flags: Sequence[str]) -> str:
    """Returns which flags of a command serve a wish, or look like it; empty where there are none."""
    name = wish.lstrip("-").lower().replace("_", "-")
    wanted = () if wish == "-h" else _WISHES.get(name, ())  # who asks for help finds it in the rest of the sentence
    serving = [f"--{one}" for one in wanted if f"--{one}" in flags]
    if serving:
        inverse = " with T = 1 / beta" if name in _INVERSE and "--beta" not in serving else ""
        several = f"{', '.join(serving[:-1])} and {serving[-1]}" if len(serving) > 1 else serving[0]
        return f", give {several}{inverse}"
    close = get_close_matches(f"--{name}", flags, _MOST_CLOSE, _ALIKE)
    return f", did you mean {' or '.join(close)}" if close else ""
