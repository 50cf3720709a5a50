"""The identity of a model, SHA-256 of all that decides how it moves and what it is called, and its settings in words.

A run of a model given in Python, or read from an instance file, is identified by the model's content; the settings of
``[model]`` that it answers to say the same in words, as far as they are known, and count in no identity. ``sites`` is
always among them, and no setting: files from before lack it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spinsim.model.drawing import Drawn
from spinsim.model.geometry.lattice import space_of
from spinsim.model.problems.labels import label_text
from spinsim.model.quanta import one_if_equal

if TYPE_CHECKING:
    from spinsim.model.ising import Ising

_AT_ONCE: Final = 2**16  # numbers that are widened at once, in a cache
_MARK: Final = "sites"
_COUPLINGS: Final = {1.0: "ferromagnet", -1.0: "antiferromagnet"}


def content_sha256_of(model: Ising) -> str:
    """Identity of the model: SHA-256 of its sites, bonds, couplings, fields, offsets and labels.

    Where bonds are not listed the lattice stands for them, how couplings are drawn or bytes of +-1 for couplings, and
    one number for what is the same everywhere; earlier versions took more of them as lists.
    """
    own = sha256_of(model, model.graph.is_listed, model.drawn)
    if model.stated_sha256 in ("", own) or model.graph.is_listed:
        return own
    return model.stated_sha256 if model.stated_sha256 == former_sha256_of(model) else own


def former_sha256_of(model: Ising) -> str:
    """The identity that earlier versions gave a model whose bonds are not listed."""
    return sha256_of(model, not model.graph.is_huge, None)


def sha256_of(model: Ising, in_lists: bool, drawn: Drawn | None) -> str:
    """SHA-256 of a model.

    Args:
        model: A model.
        in_lists: True if bonds, couplings and fields count one by one.
        drawn: How couplings are drawn where that is to count in their stead.
    """
    digest = hashlib.sha256(f"{model.sites} {model.offset!r} {model.maxcut_weight!r}".encode())
    for piece in model.graph.identity(in_lists):
        digest.update(piece)
    if model.terms is not None:
        digest.update(b"terms" + model.terms.tobytes())
    if drawn is not None and not in_lists:
        digest.update(f"pm-j {drawn.bond_fraction!r} {drawn.seed} {drawn.first} {drawn.samples}".encode())
        given = [model.fields]
    else:
        given = [model.couplings, model.fields]
    for sample in range(model.samples):
        for rows in given if in_lists else map(one_if_equal, given):
            row, kind = rows[sample % len(rows)], "<f8" if in_lists or rows.dtype != np.int8 else "i1"
            for first in range(0, row.size, _AT_ONCE):
                digest.update(np.ascontiguousarray(row[first : first + _AT_ONCE], kind).data)
    if isinstance(model.labels, tuple):
        digest.update("\n".join(["labels", *map(label_text, model.labels)]).encode())
    return digest.hexdigest()


def described(model: Ising) -> dict[str, Any]:
    """Settings that lead to a model, in space where it has slices in time, as far as it knows them."""
    return _derived(model) | model.origin


def described_in(tables: object) -> dict[str, Any]:
    """The same as the configuration of a file has them; empty in files from before there were any."""
    table = tables.get("model") if isinstance(tables, dict) else None
    if not isinstance(table, dict) or _MARK not in table:
        return {}
    return {name: value for name, value in table.items() if name != "instance"}


def _derived(model: Ising) -> dict[str, Any]:
    graph, lattice = model.graph, model.lattice
    if lattice is not None and graph.slices > 1:
        lattice = space_of(lattice)
    found: dict[str, Any] = {_MARK: graph.sites // graph.slices, "samples": model.samples}
    if lattice is not None:
        size, boundary = "x".join(map(str, lattice.shape)), "periodic" if lattice.periodic else "open"
        found |= {"lattice": lattice.name, "size": size, "boundary": boundary}
    if graph.slices == 1:
        found |= _of_values(model)
    return found


def _of_values(model: Ising) -> dict[str, Any]:
    """Settings of couplings that are all equal or were drawn, and of a uniform field."""
    found: dict[str, Any] = {}
    if model.uniform_coupling in _COUPLINGS:
        found["couplings"] = _COUPLINGS[model.uniform_coupling]
    if model.drawn is not None:
        drawn = model.drawn
        found |= {"couplings": "pm-j", "bond_fraction": drawn.bond_fraction, "disorder_seed": drawn.seed}
    if model.uniform_field is not None:
        found["field"] = model.uniform_field * model.quantum
    return found
