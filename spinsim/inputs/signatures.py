"""Signatures that ``help`` shows with a parameter a line."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from types import FunctionType
from typing import Any, Final, TypeVar

Named = TypeVar("Named")
_WIDTH: Final = 64
_FEW: Final = 3


class Plain(str):
    """A type in words, which signatures show without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class Lines(Signature):
    """A signature that is shown with a parameter a line."""

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
        """Text of the signature, for Python's later versions."""
        return str(self)


def in_lines(named: Named) -> Named:
    """Show the long signatures of a function, or of a class's ``__init__`` and public methods, in lines."""
    members = vars(named).values() if isinstance(named, type) else [named]
    for member in members:
        function: Any = getattr(member, "__func__", member)
        if not isinstance(function, FunctionType) or (function.__name__ != "__init__" and function.__name__[0] == "_"):
            continue
        if function.__code__.co_argcount + function.__code__.co_kwonlyargcount <= _FEW:
            continue  # looking at each method of a large class would take milliseconds
        plain = signature(function)
        if len(str(plain)) > _WIDTH:
            said = [one.replace(annotation=_plain(one.annotation)) for one in plain.parameters.values()]
            told: Any = function
            told.__signature__ = Lines(said, return_annotation=_plain(plain.return_annotation))
    return named


def _plain(annotation: Any) -> Any:
    return Plain(annotation.replace("npt.", "")) if isinstance(annotation, str) else annotation
