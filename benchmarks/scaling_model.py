"""What slabs of one lattice should reach on many GPUs, by a model of four numbers, as the tables of docs/scaling.md.

    python benchmarks/scaling_model.py
    python benchmarks/scaling_model.py --rate 4386 --start 5.1 --domain 72

A half-sweep of a slab takes the time of its updates at the rate of one GPU and a fixed time in which blocks start, wait
for each other and finish. GPUs of one NVLink domain read their neighbours' edges in the kernel, beside the interior, so
that a halo costs nothing as long as it travels faster than the interior is updated. Between domains halos are copied
after each half-sweep, over the network, and the kernel starts anew.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple


class Machine(NamedTuple):
    """The numbers of the model.

    Attributes:
        rate: Updates per nanosecond of one GPU with all of its multiprocessors at work.
        start: Microseconds of a half-sweep that no update takes.
        domain: GPUs that reach each other's memory.
        latency: Microseconds from GPU to GPU within a domain.
        bandwidth: Bytes per microsecond likewise.
        far_latency: Microseconds of a copied halo between domains, the launch included.
        far_bandwidth: Bytes per microsecond likewise.
    """

    rate: float = 4386.0
    start: float = 5.1
    domain: int = 8
    latency: float = 3.0
    bandwidth: float = 353e3
    far_latency: float = 40.0
    far_bandwidth: float = 45e3

    def half_sweep(self, sites: int, edge: int, gpus: int) -> float:
        """Microseconds of a half-sweep of a lattice of so many sites, whose slabs end in ``edge`` sites."""
        interior = sites / gpus / 2 / self.rate / 1e3
        if gpus == 1:
            return interior + self.start
        halo = 2 * edge / 2 / 8  # bytes of one colour at both ends
        near = max(interior, self.latency + halo / self.bandwidth) + self.start
        return near if gpus <= self.domain else near + self.far_latency + halo / self.far_bandwidth

    def updates(self, sites: int, edge: int, gpus: int) -> float:
        """Updates per nanosecond of all GPUs together."""
        return sites / 2 / self.half_sweep(sites, edge, gpus) / 1e3


def cases(gpus: int) -> dict[str, tuple[int, int]]:
    """Sites and sites of an edge of each column, on so many GPUs."""
    return {
        "2D weak": (2**17 * 2**16 * gpus, 2**17),
        "2D L = 2^16": (2**32, 2**16),
        "2D L = 2^17": (2**34, 2**17),
        "2D L = 2^20": (2**40, 2**20),
        "3D L = 512": (2**27, 2**18),
        "3D L = 2048": (2**33, 2**22),
    }


def main() -> None:
    """Print updates per nanosecond and the share of a linear gain, a row for each number of GPUs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in Machine()._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    machine = Machine(**vars(parser.parse_args()))
    print(" | ".join(["GPUs", *cases(1)]))
    for gpus in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        row = [str(gpus)]
        for sites, edge in cases(gpus).values():
            rate = machine.updates(sites, edge, gpus)
            row.append(f"{rate:,.0f} ({100 * rate / gpus / machine.updates(sites, edge, 1):.0f} %)")
        print(" | ".join(row))


if __name__ == "__main__":
    main()
