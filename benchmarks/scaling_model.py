"""Rates that slabs of one lattice should reach on many GPUs: the model of docs/benchmarks/scaling.md.

    python benchmarks/scaling_model.py
    python benchmarks/scaling_model.py --domain 72

A half-sweep of a slab takes the time of its updates at the rate of one GPU and a fixed time in which blocks start, wait
for each other and finish. GPUs of one NVLink domain read their neighbours' edges in the kernel, beside the interior, so
that a halo costs nothing as long as it travels faster than the interior is updated. Between domains halos are copied
after each half-sweep, over the network, and the kernel starts anew.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple


class Lattice(NamedTuple):
    """A lattice that is cut into slabs.

    Attributes:
        dimension: 2 or 3.
        sites: Of all slabs.
        edge: Sites of the row or plane in which a slab ends.
    """

    dimension: int
    sites: int
    edge: int


class Machine(NamedTuple):
    """The numbers of the model.

    Attributes:
        rate: Updates per nanosecond of one GPU with all of its multiprocessors at work, of the 2D ferromagnet.
        start: Microseconds of its half-sweeps that no update takes.
        rate_3d: As ``rate``, of 3D +-J.
        start_3d: As ``start``.
        domain: GPUs that reach each other's memory.
        latency: Microseconds from GPU to GPU within a domain.
        bandwidth: Bytes per microsecond likewise.
        far_latency: Microseconds of a copied halo between domains, the launch included.
        far_bandwidth: Bytes per microsecond likewise.
    """

    rate: float = 4386.0
    start: float = 5.1
    rate_3d: float = 2951.0
    start_3d: float = 3.7
    domain: int = 8
    latency: float = 3.0
    bandwidth: float = 353e3
    far_latency: float = 40.0
    far_bandwidth: float = 45e3

    def half_sweep(self, lattice: Lattice, gpus: int) -> float:
        """Microseconds of a half-sweep."""
        rate, start = (self.rate, self.start) if lattice.dimension == 2 else (self.rate_3d, self.start_3d)
        interior = lattice.sites / gpus / 2 / rate / 1e3
        if gpus == 1:
            return interior + start
        halo = 2 * lattice.edge / 2 / 8  # bytes of one colour at both ends
        near = max(interior, self.latency + halo / self.bandwidth) + start
        return near if gpus <= self.domain else near + self.far_latency + halo / self.far_bandwidth

    def updates(self, lattice: Lattice, gpus: int) -> float:
        """Updates per nanosecond of all GPUs together."""
        return lattice.sites / 2 / self.half_sweep(lattice, gpus) / 1e3


def cases(gpus: int) -> dict[str, Lattice]:
    """The lattice of each column, on so many GPUs."""
    return {
        "2D, 131072 x 65536 each": Lattice(2, 2**17 * 2**16 * gpus, 2**17),
        "2D, L = 2^16": Lattice(2, 2**32, 2**16),
        "2D, L = 2^17": Lattice(2, 2**34, 2**17),
        "2D, L = 2^20": Lattice(2, 2**40, 2**20),
        "3D, L = 512": Lattice(3, 2**27, 2**18),
        "3D, L = 2048": Lattice(3, 2**33, 2**22),
    }


def main() -> None:
    """Print updates per nanosecond and the share of a linear gain, a row for each number of GPUs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in Machine()._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    machine = Machine(**vars(parser.parse_args()))
    print("| " + " | ".join(["GPUs", *cases(1)]) + " |")
    print("| --- " * (1 + len(cases(1))) + "|")
    for gpus in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        row = [str(gpus)]
        for lattice in cases(gpus).values():
            rate = machine.updates(lattice, gpus)
            row.append(f"{rate:,.0f} ({100 * rate / gpus / machine.updates(lattice, 1):.0f} %)")
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
