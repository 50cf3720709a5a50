"""Quantities that follow from a model alone: kept with it, its identity, its settings in words.

The identity is the SHA-256 of all that decides how a model moves and what it is called.

A run of a model given in Python, or read from an instance file, is identified by the model's content; the settings of
``[model]`` that it answers to say the same in words, as far as they are known, and count in no identity. ``sites`` is
always among them, and no setting: files from before lack it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple, cast

import numpy as np

from spinsim.model.drawing import Drawn
from spinsim.model.geometry.lattice import space_of
from spinsim.model.graph import MOST_KEPT
from spinsim.model.problems.quadratic import label_text
from spinsim.model.quanta import one_if_equal

if TYPE_CHECKING:
    from spinsim.model.ising import Ising

Made = TypeVar("Made")
Given = TypeVarTuple("Given")
_AT_ONCE: Final = 2**16  # numbers that are widened at once, in a cache
_MARK: Final = "sites"
_COUPLINGS: Final = {1.0: "ferromagnet", -1.0: "antiferromagnet"}


class Keeping:
    """The part of ``Ising`` that keeps what follows from the model; copies begin with nothing."""

    def once(self, make: Callable[[Ising, *Given], Made], *given: *Given) -> Made:
        """Return ``make(model, ...)``, computed once for the model and these hashable arguments.

        Callers do not change what is returned.
        """
        model = cast("Ising", self)
        if model.samples * (model.bonds + model.sites) > MOST_KEPT:
            return make(model, *given)
        kept: dict[Any, Made] = vars(self).setdefault("_kept", {})
        key = make, given
        if key not in kept:
            kept[key] = make(model, *given)
        return kept[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}


def content_sha256_of(model: Ising) -> str:
    """Identity of the model: SHA-256 of its sites, bonds, couplings, fields, offsets and labels.

    Bonds that are not listed count by their lattice, couplings by recipe or as bytes, equal
    values as one number. Earlier versions took more of them as lists.
    """
    own = sha256_of(model, model.graph.is_listed, model.drawn)
    if model.stated_sha256 in ("", own) or model.graph.is_listed:
        return own
    return model.stated_sha256 if model.stated_sha256 == former_sha256_of(model) else own


def former_sha256_of(model: Ising) -> str:  # of earlier versions, for a model whose bonds are not listed
    return sha256_of(model, not model.graph.is_huge, None)


def sha256_of(model: Ising, in_lists: bool, drawn: Drawn | None) -> str:
    """SHA-256 of a model; in lists bonds, couplings and fields count one by one, else how couplings are drawn."""
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
    graph, lattice = model.graph, model.lattice
    if lattice is not None and graph.slices > 1:
        lattice = space_of(lattice)
    settings: dict[str, Any] = {_MARK: graph.sites // graph.slices, "samples": model.samples}
    if lattice is not None:
        size, boundary = "x".join(map(str, lattice.shape)), "periodic" if lattice.periodic else "open"
        settings |= {"lattice": lattice.name, "size": size, "boundary": boundary}
    if graph.slices == 1:
        if model.uniform_coupling in _COUPLINGS:
            settings["couplings"] = _COUPLINGS[model.uniform_coupling]
        if (drawn := model.drawn) is not None:
            settings |= {"couplings": "pm-j", "bond_fraction": drawn.bond_fraction, "disorder_seed": drawn.seed}
        if model.uniform_field is not None:
            settings["field"] = model.uniform_field * model.quantum
    return settings | model.origin


def described_in(tables: object) -> dict[str, Any]:
    """The settings of a model in the configuration of a file; empty in files from before there were any."""
    table = tables.get("model") if isinstance(tables, dict) else None
    if not isinstance(table, dict) or _MARK not in table:
        return {}
    return {name: value for name, value in table.items() if name != "instance"}
