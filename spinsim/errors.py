"""The one error that a user's input can cause."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: one sentence that names the value, the rule and the mend. The command line exits with status 2."""


class MissingError(InputError, AttributeError):
    """A run has no such thing: bad input to who asks for it, and to ``hasattr`` an attribute that is not there."""
