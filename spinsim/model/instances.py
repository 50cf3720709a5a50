"""Models of problems from elsewhere, by functions that users call."""

from __future__ import annotations

import os
from typing import Any

from spinsim.errors import InputError
from spinsim.inputs.arguments import public
from spinsim.model.formats import read_problem
from spinsim.model.formats.source import Source
from spinsim.model.ising import Ising


@public
def read_instance(path: str | os.PathLike[str]) -> Ising:
    """Read an Ising, QUBO or MaxCut instance; its header, and of some formats the suffix, tell the format.

    * rudy, G-set, Biq Mac: ``n m``, then m lines ``i j w``, or ``i j``, with sites from 1. A MaxCut instance: J = -w,
      and ``maxcut_weight`` is the sum W of all weights, so that a cut of weight c has energy W - 2c.
    * DIMACS: ``p edge n m`` or ``p col n m``, then lines ``e i j``, or ``e i j w``, with sites from 1, a MaxCut
      instance in which each edge counts once.
    * ``.sparse`` or ``.bq`` of Biq Mac, ``.qs`` of QOBLIB: ``n m``, then ``i j q`` with sites from 1: minimise x' Q x,
      Q symmetric. A comment ``# ObjectiveOffset c`` states the constant.
    * ``.edgelist``, ``.edges``, ``.el``, ``.wel``: lines ``u v`` or ``u v w`` of words, a MaxCut instance.
    * COO of dimod: ``# vartype=SPIN`` or ``# vartype=BINARY``, then ``i j value`` with sites from 0; i = i is a linear
      term. dimod minimises sum h s + sum J s s: our J and h are minus its values.
    * qbsolv: one line ``p qubo 0 maxNodes nDiagonals nElements``, then ``i j value`` with sites from 0, i = j for
      diagonals.
    * MatrixMarket: the weights of a MaxCut instance; with a comment ``% vartype=BINARY`` or ``% vartype=SPIN`` a
      problem in such variables.
    * BQM files of dimod, as ``bqm.to_file()`` writes them.

    Binary variables are x = (1 + s) / 2; energy + ``offset`` of the model is the value of the QUBO. Repeated terms
    add: pairs as separate bonds, linear terms in one field. Bonds of value 0 are left out; their sites stay.
    Energies, fields and couplings are in the units of the file. Labels are those of the file: its numbers or words.
    Lines that begin with ``#`` or a single ``c`` above a header are comments; of problems other than graphs one such
    as ``# offset=c`` states the constant. Files that gzip or xz compressed are unpacked.

    Args:
        path: The file: UTF-8 text with any line ends; blank lines and trailing spaces are allowed.

    Returns:
        The model, named after the file without its last suffix.

    Raises:
        InputError: where the file cannot be read, is of another format or breaks a rule of its own; the sentence
            names the file and, where there is one, the line.
    """
    source = Source(path)
    problem = read_problem(source)
    try:
        return Ising.from_quadratic(problem)
    except InputError as error:
        raise InputError(f"instance file {source.name} cannot be held exactly: {error}") from error


@public
def from_bqm(bqm: Any, name: str = "bqm") -> Ising:
    """The model of a ``dimod.BinaryQuadraticModel``: the same as ``Ising.from_bqm``.

    Args:
        bqm: The binary quadratic model. Its biases are -J and -h.
        name: Short name for files and figures.

    Returns:
        The model, with the labels and the kind of variables of ``bqm``.
    """
    return Ising.from_bqm(bqm, name)
