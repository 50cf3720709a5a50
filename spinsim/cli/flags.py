"""Flags that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spinsim.cli.values import Real, Whole

Flag = typer.Option

Instance = Annotated[
    str | None, typer.Argument(help="Graph file: rudy / G-set / Biq Mac MaxCut, COO or qbsolv QUBO / Ising.")
]
Lattice = Annotated[str | None, Flag(help="chain, square or cubic.  [square]")]
Size = Annotated[str | None, Flag(help="Side lengths: 16 or 32x32x8.  [32]")]
Boundary = Annotated[str | None, Flag(help="periodic or open.  [periodic]")]
Couplings = Annotated[str | None, Flag(help="ferromagnet, antiferromagnet, pm-j or gaussian.  [ferromagnet]")]
BondFraction = Annotated[float | None, Real(help="Share of positive bonds of pm-j.  [0.5]")]
Field = Annotated[float | None, Real(help="Uniform field h.  [0]")]
Samples = Annotated[int | None, Whole(help="Disorder samples.  [1]")]
DisorderSeed = Annotated[int | None, Whole(help="Seed of the couplings.  [0]")]
Start = Annotated[str | None, Flag(help="Initial spins: random or up.  [random]")]
ZeroAcceptance = Annotated[float | None, Real(help="Acceptance of flips that cost nothing.  [1 - 2^-6]")]
Seed = Annotated[int | None, Whole(help="Seed of the dynamics, 64 bits.  [1]")]
RngRounds = Annotated[int | None, Whole(help="Philox rounds, 10 or 7.  [10]")]
Device = Annotated[str | None, Flag(help="auto (a GPU where there is one), cpu, or cuda, also called gpu.  [auto]")]
Threads = Annotated[int | None, Whole(help="CPU threads; no number changes the outcome.  [all]")]
Out = Annotated[str | None, Flag(help="Result file.  [runs/<job>-<model>-<hash>.h5]")]
CheckpointEvery = Annotated[float | None, Real(help="Seconds between checkpoints.  [60]")]
ConfigFile = Annotated[Path | None, Flag(help="TOML file with tables [model], [run] and the job's; flags win.")]
Overwrite = Annotated[bool, Flag("--overwrite", help="Replace outputs of the same kind that are there already.")]
Quiet = Annotated[bool, Flag("--quiet", help="No progress bar and no summary.")]
AsJson = Annotated[bool, Flag("--json", help="The summary as one JSON object.")]

MODEL = ("instance", "lattice", "size", "boundary", "couplings", "bond_fraction", "field", "samples", "disorder_seed")
RUN = ("replicas", "seed", "rng_rounds", "device", "threads", "out", "checkpoint_every")


def tables(given: dict[str, Any], job: str, keys: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """A command's flags as tables of a configuration; ``keys`` are those of the job's own."""
    return {name: {key: given[key] for key in names} for name, names in (("model", MODEL), (job, keys), ("run", RUN))}
