"""Errors as other processes get them: pickled."""

from __future__ import annotations

import pickle

import pytest

from spinsim.errors import InputError, MissingError, OwnCodeError, WrongTypeError
from spinsim.store.files import DamageError
from spinsim.transfer_matrix.lanczos import NotConvergedError


def copied(error: InputError) -> InputError:
    return pickle.loads(pickle.dumps(error))  # noqa: S301  (our own)


@pytest.mark.parametrize("kind", [InputError, WrongTypeError, MissingError, DamageError, NotConvergedError])
def test_errors_are_pickled(kind: type[InputError]) -> None:
    same = copied(kind("a sentence"))
    assert (type(same), str(same)) == (kind, "a sentence")


def test_errors_of_own_code_keep_their_trace() -> None:
    same = copied(OwnCodeError("a sentence", "a trace"))
    assert (type(same), str(same), vars(same)) == (OwnCodeError, "a sentence", {"trace": "a trace"})
