"""One setting: a field of a dataclass whose metadata says all that users are told of it, and what it refuses.

Nothing here imports NumPy, for the command line reads every setting before it does anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args, get_type_hints

from spinsim.errors import InputError
from spinsim.inputs.arguments import as_stated, real, whole
from spinsim.inputs.texts import RANDOM, alike, beyond_ising, either

Kind = TypeVar("Kind")
Returned = TypeVar("Returned")

_KEY: Final = "setting"


class Numbers(NamedTuple):
    """A setting that is text in which numbers may stand; files may give it as a number or as a list."""

    kind: type  # type of the numbers
    between: str  # separator between them; empty where there may be one alone

    @property
    def words(self) -> tuple[str, ...]:
        return ("a number", "a list of numbers") if self.between else ("a whole number",)


SIDES: Final = Numbers(int, "x")
GRID: Final = Numbers(float, ",")
COUNT: Final = Numbers(int, "")


@dataclass(frozen=True)
class Setting:
    """Description of one setting, for flags, configuration files, Python and the documentation."""

    help: str  # meaning, a phrase without a full stop
    default: Any  # value where nothing is given
    shown: str = ""  # the default in words, where the value does not say it
    unit: str = ""  # unit of its numbers
    low: float | None = None  # lowest number that is allowed
    above: float | None = None  # number that it must exceed
    high: float | None = None  # highest number that is allowed
    finite: bool = True  # True to refuse infinity
    choices: tuple[Any, ...] = ()  # values that are allowed, where these can be counted
    besides: str | None = None  # how a value may begin that is none of the choices
    numbers: Numbers | None = None  # which numbers its text may hold
    is_path: bool = False  # True if it names a file
    is_argument: bool = False  # True if it stands on the command line without a flag
    flag: str | None = ""
    """Flag on the command line, empty where the name says it; None where only files and Python have it."""
    is_seed: bool = False  # True if ``random``, or None in Python, stands for a fresh value
    physics: bool = True  # True if it counts in the identity of a run
    before: Any = ...
    """Of a setting that came after 1.0: the value of runs from before, which does not count in their identity."""
    unused: bool = False  # True if it means nothing to a job
    name: str = ""  # key in configuration files
    kind: type = str  # ``int``, ``float``, ``str`` or ``bool``
    optional: bool = False  # True if it may be None

    @property
    def option(self) -> str | None:
        if self.is_argument:
            return None
        return f"--{self.name.replace('_', '-')}" if self.flag == "" else self.flag

    @property
    def takes_lists(self) -> bool:
        """True if its text may hold several numbers."""
        return self.numbers is not None and self.numbers.between != ""

    @property
    def default_text(self) -> str:
        """The default as users read it, empty where there is none."""
        if self.shown or self.default is None:
            return self.shown
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    @property
    def described(self) -> str:
        """Description with its choices, a phrase without a full stop."""
        return self.help + (f": {either(self.choices)}" if self.choices else "")

    @property
    def allowed(self) -> str:
        """Allowed values in words, such as ``a number from 0 to 1``; empty where the type says it."""
        noun = "a whole number" if self.kind is int else "a number"
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}" if self.kind is str else either(self.choices)
        if self.high is not None:
            bottom = f"from {self.low} to" if self.above is None else f"above {self.above} and at most"
            return f"{noun} {bottom} {self.high}"
        if self.low is None:
            return ""
        if self.low > 0 and self.kind is float:
            return f"a positive finite number, at least {self.low:g}"
        return f"{noun}{' of ' + self.unit if self.unit == 'seconds' else ''}, at least {self.low}"

    def check(self, value: Any) -> None:
        if value is None:
            return
        if self.is_path and (not value or "\0" in value):
            raise InputError(f"{self.name} {value!r} is not a path: name a file")
        if self.choices:
            self._check_choice(value)
        elif self.kind in (int, float):
            self._check_range(value)

    def _check_choice(self, value: Any) -> None:
        if value in self.choices or (self.besides is not None and str(value).startswith(self.besides)):
            return
        if self.kind is not str:
            raise InputError(f"{self.name} {value} is not supported: choose {self.allowed}")
        close = alike(value, self.choices)
        hint = f"did you mean {close[0]!r}?" if close else f"choose {self.allowed}"
        raise InputError(f"{self.name} {value!r} is unknown: {beyond_ising(value) or hint}")

    def _check_range(self, value: float) -> None:
        low = -inf if self.low is None else self.low
        high = inf if self.high is None else self.high
        inside = low <= value <= high and (self.above is None or value > self.above)
        if inside and (isfinite(value) or not self.finite):
            return
        if not self.allowed:
            raise InputError(f"{self.name} {value} is not finite: give a number such as 0.5")
        raise InputError(f"{self.name} {value} is out of range: give {self.allowed}")

    def typed(self, value: Any) -> Any:
        """A value of a file or call as the setting's type; whole numbers serve as floats, lists of numbers as text.

        None stands for what is filled in when the model is there, where the setting has it.
        """
        if value is None and self.optional:
            return None
        also: tuple[str, ...] = ()
        if self.numbers is not None:
            value, also = _as_text(value, self.numbers), self.numbers.words
        elif self.is_seed:
            if isinstance(value, str) and value == RANDOM:
                return value
            also = (repr(RANDOM),)
        plain = as_stated(self.name, value, self.kind.__name__, also)
        if self.kind is float and isinstance(plain, int):
            return float(plain) if abs(plain) < 2**1023 else inf
        return plain


def setting(default: Any, help: str, **about: Any) -> Any:  # noqa: A002  (as in argparse)
    return dataclasses.field(default=default, metadata={_KEY: Setting(help, default, **about)})


class Table:
    """Base of the frozen dataclasses whose fields are settings: one ``[table]`` of a configuration file."""

    def __post_init__(self) -> None:
        given = vars(self)
        for name, one in settings_of(type(self)).items():
            if given[name] is not one.default:
                one.check(given[name])
        self.check_together()

    def check_together(self) -> None:
        """Refuse what single settings cannot: texts that cannot be read, values that do not go together."""

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Refuse settings that are not to be given together, whatever their values."""

    @classmethod
    def stored(cls, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings in a table of a file, which may be older than some; the rest of the table describes."""
        known = settings_of(cls)
        later = {name: one.before for name, one in known.items() if name not in table and one.before is not ...}
        return later | {name: value for name, value in table.items() if name in known}

    @classmethod
    def identity(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a table that counts in the identity of its run, as JSON has it."""
        own = {name: table.get(name, one.before) for name, one in settings_of(cls).items() if one.physics}
        return {name: value for name, value in own.items() if value != settings_of(cls)[name].before}


def once(function: Callable[[Kind], Returned]) -> Callable[[Kind], Returned]:
    """A function of classes that is carried out once for each: ``cache``, whose keys mypy lets no class be."""
    return cast("Callable[[Kind], Returned]", cache(function))


@once
def settings_of(kind: type[Table]) -> Mapping[str, Setting]:
    hints = get_type_hints(kind)
    settings = {}
    for field in dataclasses.fields(cast("Any", kind)):
        types = get_args(hints[field.name]) or (hints[field.name],)
        one = next(each for each in types if each is not type(None))
        settings[field.name] = replace(field.metadata[_KEY], name=field.name, kind=one, optional=type(None) in types)
    return MappingProxyType(settings)


def _as_text(value: Any, form: Numbers) -> Any:
    """A number, or a list of numbers, as text; anything else as it is."""
    numbers = value if isinstance(value, list) and form.between else [value]
    try:
        number = whole if form.kind is int else real
        return form.between.join(str(number(one)) for one in numbers) if numbers else value
    except (TypeError, ValueError, OverflowError):
        return value
