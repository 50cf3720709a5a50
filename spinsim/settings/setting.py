"""One setting: a field of a dataclass, whose metadata hold all that users are told about it, and its allowed values.

Nothing here imports NumPy, because the command line reads every setting before it does anything.
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
    """A setting whose text may contain numbers; files may give it as a number or as a list."""

    kind: type  # type of the numbers
    between: str  # separator between them; empty if only one number is allowed

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
    default: Any  # value if none is given
    shown: str = ""  # default in words, if the value is not self-explanatory
    unit: str = ""  # unit of its numbers
    low: float | None = None  # lowest allowed number
    above: float | None = None  # exclusive lower bound
    high: float | None = None  # highest allowed number
    finite: bool = True  # True to refuse infinity
    choices: tuple[Any, ...] = ()  # allowed values, if they can be listed
    besides: str | None = None  # prefix of further allowed values
    numbers: Numbers | None = None  # numbers that its text may contain
    is_path: bool = False  # True if it names a file
    is_argument: bool = False  # True if it is given on the command line without a flag
    flag: str | None = ""
    """Flag on the command line; empty to derive it from the name, None if only files and Python have the setting."""
    is_seed: bool = False  # True if ``random``, or None in Python, draws a fresh value
    physics: bool = True  # True if it counts in the identity of a run
    before: Any = ...
    """For a setting added after 1.0: the value assumed for older runs, which does not count in their identity."""
    unused: bool = False  # True if it has no meaning for a job
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
        """True if its text may contain several numbers."""
        return self.numbers is not None and self.numbers.between != ""

    @property
    def default_text(self) -> str:
        """Default as users read it; empty if there is none."""
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
        """Allowed values in words, such as ``a number from 0 to 1``; empty if the type suffices."""
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
        """Convert a value of a file or call to the setting's type; whole numbers become floats, lists of numbers text.

        None is kept if the setting is optional; it is filled in once the model is known.
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
    """Base class of frozen dataclasses whose fields are settings: one ``[table]`` of a configuration file."""

    def __post_init__(self) -> None:
        given = vars(self)
        for name, one in settings_of(type(self)).items():
            if given[name] is not one.default:
                one.check(given[name])
        self.check_together()

    def check_together(self) -> None:
        """Refuse what single settings cannot: unreadable texts, and values that contradict each other."""

    @classmethod
    def check_given(cls, given: Mapping[str, Any]) -> None:
        """Refuse settings that exclude each other, whatever their values."""

    @classmethod
    def stored(cls, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings in a table of a file, which may be older than some; other entries only describe."""
        known = settings_of(cls)
        later = {name: one.before for name, one in known.items() if name not in table and one.before is not ...}
        return later | {name: value for name, value in table.items() if name in known}

    @classmethod
    def identity(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a table that counts in the identity of its run, in JSON form."""
        own = {name: table.get(name, one.before) for name, one in settings_of(cls).items() if one.physics}
        return {name: value for name, value in own.items() if value != settings_of(cls)[name].before}


def once(function: Callable[[Kind], Returned]) -> Callable[[Kind], Returned]:
    """Cache a function of classes, like ``cache``, whose keys mypy does not allow to be classes."""
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
    """Return a number, or a list of numbers, as text; anything else unchanged."""
    numbers = value if isinstance(value, list) and form.between else [value]
    try:
        number = whole if form.kind is int else real
        return form.between.join(str(number(one)) for one in numbers) if numbers else value
    except (TypeError, ValueError, OverflowError):
        return value
