"""Settings of ``[model]`` that a model given in Python, or read from an instance file, answers to.

A run of such a model is identified by the model's content; these settings say the same in words, as far as they are
known, and count in no identity. ``sites`` is always among them, and no setting: files from before lack it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spinsim.model.ising import Ising

_MARK: Final = "sites"
_COUPLINGS: Final = {1.0: "ferromagnet", -1.0: "antiferromagnet"}


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
    """Settings that follow from lattice, couplings and fields."""
    from spinsim.model.trotter import space_of

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
