"""Instance files: which format one has, read and written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from spinsim.errors import InputError
from spinsim.machine.outputs import write_outputs
from spinsim.model.formats import biq_mac, bqm_file, coo, edge_list, matrix_market, qbsolv, rudy
from spinsim.model.formats.source import Source
from spinsim.model.ising import Ising
from spinsim.model.problems.quadratic import Quadratic


class Format(NamedTuple):
    """A format of instance files.

    Attributes:
        name: In words.
        suffixes: Of files that are written in it.
        recognises: Whether a file is of it.
        read: The problem of such a file.
        write: The content of such a file.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Quadratic]
    write: Callable[[Quadratic], bytes]


FORMATS: Final = (
    Format("BQM file of dimod", (".bqm",), bqm_file.recognises, bqm_file.read, bqm_file.write),
    Format("edge list", (".edgelist", ".edges"), edge_list.recognises, edge_list.read, edge_list.write),
    Format("Biq Mac QUBO", (".sparse",), biq_mac.recognises, biq_mac.read, biq_mac.write),
    Format("MatrixMarket", (".mtx", ".mm"), matrix_market.recognises, matrix_market.read, matrix_market.write),
    Format("COO", (".coo",), coo.recognises, coo.read, coo.write),
    Format("qbsolv", (".qubo",), qbsolv.recognises, qbsolv.read, qbsolv.write),
    Format("rudy", (".mc", ".rud", ".rudy", ".txt"), rudy.recognises, rudy.read, rudy.write),
)
"""In the order in which a file is tried: the first that recognises it reads it."""


def read_instance(path: str | os.PathLike[str]) -> Ising:
    """Read an Ising, QUBO or MaxCut instance; its first bytes, and of two formats the suffix, tell the format.

    * rudy, G-set, Biq Mac: ``n m``, then m lines ``i j w``, or ``i j``, with sites from 1. A MaxCut instance: J = -w,
      and ``maxcut_weight`` is the sum W of all weights, so that a cut of weight c has energy W - 2c.
    * ``.sparse`` of Biq Mac: ``n m``, then ``i j q`` with sites from 1: minimise x' Q x, Q symmetric.
    * ``.edgelist``, ``.edges``: lines ``u v`` or ``u v w`` of words, a MaxCut instance.
    * COO of dimod: ``# vartype=SPIN`` or ``# vartype=BINARY``, then ``i j value`` with sites from 0; i = i is a linear
      term, other lines with ``#`` are comments. dimod minimises sum h s + sum J s s: our J and h are minus its values.
    * qbsolv: comments ``c ...``, one line ``p qubo 0 maxNodes nDiagonals nElements``, then ``i j value`` with sites
      from 0, i = j for diagonals and i < j for elements.
    * MatrixMarket: the weights of a MaxCut instance; with a comment ``% vartype=BINARY`` or ``% vartype=SPIN`` a
      problem in such variables.
    * BQM files of dimod, as ``bqm.to_file()`` writes them.

    Binary variables are x = (1 + s) / 2; energy + ``offset`` of the model is the value of the QUBO. Repeated terms
    add: pairs as separate bonds, linear terms in one field. Bonds of value 0 are left out; their sites stay.
    Energies, fields and couplings are in the units of the file. Labels are those of the file: its numbers or words.

    Args:
        path: The file: UTF-8 text with any line ends; blank lines and trailing spaces are allowed.

    Returns:
        The model, named after the file without its last suffix.

    Raises:
        InputError: where the file cannot be read, is of another format or breaks a rule of its own; the sentence
            names the file and, where there is one, the line.
    """
    source = Source(path)
    problem = next(each for each in FORMATS if each.recognises(source)).read(source)
    try:
        return problem.ising()
    except InputError as error:
        raise InputError(f"instance file {source.name} cannot be held exactly: {error}") from error


def write_instance(problem: Quadratic, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a problem into a file of the format that its suffix names.

    Args:
        problem: With all it has: values to the last digit, the constant and the labels.
        path: Of the file.
        overwrite: Whether an instance file that is there may be replaced.

    Raises:
        InputError: for an unknown suffix, for what the format cannot hold, and where the file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    found = next((each for each in FORMATS if suffix in each.suffixes), None)
    if found is None:
        known = ", ".join(f"{each.suffixes[0]} ({each.name})" for each in FORMATS)
        raise InputError(f"suffix {suffix!r} of {path} names no format of instances: choose one of {known}")
    write_outputs({Path(path): ("instance", found.write(problem))}, overwrite)
