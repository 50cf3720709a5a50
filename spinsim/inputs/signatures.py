"""Functions and classes that users call: arguments as stated, signatures that ``help`` shows a parameter a line."""

from __future__ import annotations

from inspect import Parameter, Signature, signature
from types import FunctionType
from typing import Any, Final, TypeVar

from spinsim.inputs.arguments import checked

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


def public(named: Named) -> Named:
    """Make a function, or a class's ``__init__`` and public methods, fit for users.

    Arguments are taken as signatures state them (``arguments.checked``), and ``help`` shows long signatures in lines.
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
    if function.__code__.co_argcount + function.__code__.co_kwonlyargcount > _FEW:  # looking at all takes long
        plain = signature(function)
        if len(str(plain)) > _WIDTH:
            said = [one.replace(annotation=_plain(one.annotation)) for one in plain.parameters.values()]
            fit.__signature__ = Lines(said, return_annotation=_plain(plain.return_annotation))
    return fit


def _plain(annotation: Any) -> Any:
    return Plain(annotation.replace("npt.", "")) if isinstance(annotation, str) else annotation
