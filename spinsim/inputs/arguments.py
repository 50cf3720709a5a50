"""Checks of the users' arguments: their types by the annotations, their names by the signatures.

All calls, settings and samplers share this check. An annotation is text, such as ``int | None``. Alternatives that the
program does not know, and arguments listed in ``judges``, are left to the function, whose messages say more.
``public`` marks the functions and classes that users call; ``help`` shows one parameter of their signatures per line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from inspect import Parameter, Signature, signature, unwrap
from operator import index
from types import FunctionType
from typing import Any, Final, NamedTuple, TypeVar

from spinsim.errors import WrongTypeError
from spinsim.inputs.texts import either, nearest, shown

Function = TypeVar("Function", bound=Callable[..., Any])
_JUDGED: Final = "_judged"
_NONE: Final = "_takes_none"
_LARGEST_WHOLE: Final = 2**53  # above it a float stands for several whole numbers


def plain(value: Any) -> Any:
    """Return a NumPy number as a Python number, anything else unchanged."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def whole(value: Any) -> Any:
    """Return a whole number, which may be given as a float such as 1e3."""
    number = plain(value)
    if isinstance(number, bool):
        raise TypeError
    if isinstance(number, float) and number.is_integer() and abs(number) <= _LARGEST_WHOLE:
        return int(number)
    return index(number)


def real(value: Any) -> Any:
    """Return a number; whole numbers are not rounded to floats."""
    number = plain(value)
    if type(number) in (float, int):
        return number
    if isinstance(number, bool | str | bytes) or hasattr(number, "__len__"):
        raise TypeError
    return float(number)


def _numbers(values: Any) -> Any:
    """Check that values are numbers and not truths, of any shape, and return them unchanged."""
    import numpy as np  # slow to load

    kind = np.asarray(values).dtype.kind
    if kind not in "iufO" or (isinstance(values, list | tuple) and any(map(_is_truth, values))):
        raise TypeError
    if kind == "O":
        np.asarray(values, np.float64)
    return values


def _is_truth(value: Any) -> bool:
    return type(value) not in (float, int) and isinstance(plain(value), bool)


def _where(holds: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a check that returns a value for which ``holds`` is true."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise TypeError
        return value

    return check


def _of(*kinds: type) -> Callable[[Any], Any]:
    return _where(lambda value: isinstance(value, kinds))


_several = _where(lambda values: not isinstance(values, str | bytes) and iter(values))
_path = _where(lambda value: isinstance(value, os.PathLike) and isinstance(os.fspath(value), str))


class _Type(NamedTuple):
    """A type that can appear in annotations."""

    check: Callable[[Any], Any]  # returns a value in the type's own form; raises TypeError or ValueError for others
    words: str  # in words, such as "a number"
    own: tuple[type, ...] = ()  # types of values that need no check


_TYPES: Final = {
    "int": _Type(whole, "a whole number", (int,)),
    "float": _Type(real, "a number", (float, int)),
    "str": _Type(_of(str), "a string", (str,)),
    "Literal": _Type(_of(str), "a string"),
    "bool": _Type(lambda value: _of(bool)(plain(value)), "true or false", (bool,)),
    "None": _Type(_of(type(None)), "", (type(None),)),
    "ArrayLike": _Type(_numbers, "a number or an array of numbers"),
    "PathLike": _Type(_path, "a path"),
    "Callable": _Type(_where(callable), "a function"),
    "Mapping": _Type(_of(Mapping), "a dict"),
    "Sequence": _Type(_several, "a list"),
    "Iterable[str]": _Type(lambda values: [_of(str)(one) for one in _several(values)], "a list of strings"),
    "Sequence[float]": _Type(lambda values: [real(one) for one in _several(values)], "a list of numbers"),
    "Iterable": _Type(_several, "a list"),
    "tuple": _Type(_several, "a list"),
}


class Types(NamedTuple):
    """The types of an annotation."""

    types: tuple[_Type, ...]  # the known types
    are_all: bool  # False if the annotation has other types, which the function checks
    own: frozenset[type]  # types of values that need no check


def _heads(annotation: str) -> list[str]:
    """Return the alternatives of an annotation, each without its brackets."""
    heads, depth, head = [], 0, ""
    for letter in annotation + "|":
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            heads.append(head.strip())
            head = ""
        else:
            head += letter
    return [one if one in _TYPES else one.split("[")[0].split(".")[-1] for one in heads]


def _wanted(annotation: str, namespace: Mapping[str, Any]) -> Types:
    """Return the types of an annotation; ``namespace`` has aliases, such as ``OnUpdates``, and classes."""
    types: list[_Type] = []
    are_all = True
    for head in _heads(annotation):
        found = namespace.get(head)
        if head in _TYPES:
            types.append(_TYPES[head])
        elif isinstance(found, type) and found is not Any and not getattr(found, "_is_protocol", False):
            types.append(_Type(_of(found), f"{'an' if head[0] in 'AEIOU' else 'a'} {head}"))
        elif found is not None and "[" not in head:
            of_alias = _wanted(repr(found), {})
            types.extend(of_alias.types)
            are_all = are_all and of_alias.are_all
        else:
            are_all = False
    return Types(tuple(types), are_all, frozenset(kind for one in types for kind in one.own))


_plain_wanted = cache(partial(_wanted, namespace={}))
_ANYTHING: Final = Types((), False, frozenset())


def as_stated(name: str, value: Any, annotation: str | Types, also: tuple[str, ...] = ()) -> Any:
    """Return an argument in the form of its annotation: 1e3 as 1000 for ``int``, NumPy numbers as Python numbers.

    Args:
        name: Name of the argument.
        value: Value of the argument.
        annotation: Annotation of the argument, as text or as ``Types``.
        also: Further allowed values, in words.

    Raises:
        WrongTypeError: for a value of another type. Never raised if the annotation has unknown types.
    """
    types, are_all, own = _plain_wanted(annotation) if isinstance(annotation, str) else annotation
    if type(value) in own:
        return value
    for one in types:
        try:
            return one.check(value)
        except (TypeError, ValueError, OverflowError):
            continue
    if not are_all:
        return value
    wanted = dict.fromkeys(one.words for one in types if one.words)
    raise WrongTypeError(f"{name} = {shown(value)} has the wrong type: give {either((*wanted, *also))}")


def judges(*names: str, none: bool = False) -> Callable[[Function], Function]:
    """Let a function, or a class, check some arguments itself; with ``none`` any argument may be None."""

    def mark(called: Function) -> Function:
        function: Any = vars(called)["__init__"] if isinstance(called, type) else called
        setattr(function, _JUDGED, names)
        setattr(function, _NONE, none)
        return called

    return mark


class _Stated(NamedTuple):
    """The arguments in a function's signature."""

    places: tuple[str, ...]  # names of positional arguments, in order
    wanted: dict[str, Types]  # types by name; any type where the function checks the argument itself
    takes_others: bool  # True if the function has ``**keywords``


def _stated(function: Any) -> _Stated:
    places, wanted, takes_others = [], {}, False
    judged, namespace = getattr(function, _JUDGED, ()), unwrap(function).__globals__
    for name, one in signature(function).parameters.items():
        if one.kind is Parameter.VAR_KEYWORD:
            takes_others = True
        elif one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            is_judged = name in judged or not isinstance(one.annotation, str)
            wanted[name] = _ANYTHING if is_judged else _wanted(one.annotation, namespace)
            if getattr(function, _NONE, False):
                wanted[name] = wanted[name]._replace(own=wanted[name].own | {type(None)})
            places += [name] * (one.kind is Parameter.POSITIONAL_OR_KEYWORD)
    return _Stated(tuple(places), wanted, takes_others)


def typed(function: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments, given by name, to the types of a function; other arguments stay unchanged."""
    wanted = _stated(function).wanted
    return {name: as_stated(name, value, wanted.get(name, _ANYTHING)) for name, value in given.items()}


def checked(function: Function) -> Function:
    """Convert a function's arguments by ``as_stated`` at each call; refuse unknown or repeated names with a hint."""
    stated = cache(partial(_stated, function))  # at the first call, as reading signatures takes long

    def called(*args: Any) -> str:
        """Name of the function in messages; a class method has that of the class on which it is called."""
        if args and isinstance(args[0], type) and stated().places[:1] == ("cls",):
            return f"{args[0].__qualname__}.{function.__name__}"
        return function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        places, wanted, takes_others = stated()
        given = list(args)
        if len(args) > len(places) or not keywords.keys().isdisjoint(places[: len(args)]):
            try:
                signature(function).bind(*args, **keywords)
            except TypeError as error:
                raise WrongTypeError(f"{called(*args)} was given {error}: give each argument once, by name") from error
        for place, name in enumerate(places[: len(args)]):
            given[place] = as_stated(name, args[place], wanted[name])
        for name, value in keywords.items():
            if name in wanted:
                keywords[name] = as_stated(name, value, wanted[name])
            elif not takes_others:
                names = [*wanted]
                hint = nearest(name, names[names[:1] in (["self"], ["cls"]) :])
                raise WrongTypeError(f"{called(*args)} has no argument {name!r}: {hint}")
        return function(*given, **keywords)

    checking_call: Any = call
    return checking_call  # type: ignore[no-any-return]


Named = TypeVar("Named")
_WIDTH: Final = 64
_FEW: Final = 2


class Plain(str):
    """A type as text, which signatures show without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class Lines(Signature):
    """A signature that is shown with one parameter per line."""

    def __str__(self) -> str:
        star = Parameter.KEYWORD_ONLY in {one.kind for one in self.parameters.values()}
        lines = []
        for one in self.parameters.values():
            if star and one.kind is Parameter.KEYWORD_ONLY:
                lines.append("    *,\n")
                star = False
            lines.append(f"    {one},\n")
        nothing = self.return_annotation in (Signature.empty, "None")
        return f"(\n{''.join(lines)})" + ("" if nothing else f" -> {self.return_annotation!r}")

    def format(self, **_: Any) -> str:
        """Text of the signature, as later versions of Python call it."""
        return str(self)


def public(named: Named) -> Named:
    """Prepare a function, or a class's ``__init__`` and public methods, for users.

    Arguments are converted as ``checked`` says, and ``help`` shows long signatures with one parameter per line.
    """
    if not isinstance(named, type):
        fitted: Named = _fit(named)
        return fitted
    for name, member in list(vars(named).items()):
        function: Any = getattr(member, "__func__", member)
        if isinstance(function, FunctionType) and (name == "__init__" or name[0] != "_"):
            fit = _fit(function)
            setattr(named, name, fit if function is member else type(member)(fit))
    return named


def _fit(function: Any) -> Any:
    fit: Any = checked(function)
    if function.__code__.co_argcount + function.__code__.co_kwonlyargcount > _FEW:  # checking all functions takes long
        plain = signature(function)
        if len(str(plain)) > _WIDTH:
            said = [one.replace(annotation=_plain(one.annotation)) for one in plain.parameters.values()]
            fit.__signature__ = Lines(said, return_annotation=_plain(plain.return_annotation))
    return fit


def _plain(annotation: Any) -> Any:
    return Plain(annotation.replace("npt.", "")) if isinstance(annotation, str) else annotation
