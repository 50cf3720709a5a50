"""Measurements of a ladder on a GPU: sorted there, in one buffer, which one copy fetches beside later sweeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from spinsim.engine.base import Measurement, Spins
from spinsim.engine.correlations import Correlations
from spinsim.engine.cuda.correlations import Comparison
from spinsim.engine.cuda.fields import Fields
from spinsim.engine.cuda.held import HeldStates
from spinsim.engine.cuda.launch import Launch
from spinsim.engine.cuda.records import struct
from spinsim.engine.cuda.tempering import Tempering
from spinsim.engine.cuda.totals import Totals, TotalsInTurn
from spinsim.engine.plans import Observables

THREADS: Final = 256


class Measuring:
    """Measurements of one engine's present ladder.

    Sweeps wait until the state has been copied and sums have been sorted; copies are compared beside them.

    Args:
        sweeps: The stream of the kernels; the present one of CuPy.
        tempering: The ladder.
        comparison: What compares copies.
        observables: From the two sums that counting kernels make.
        stride: Of these sums, from sample to sample.
        held: Copies of the state.
    """

    def __init__(
        self,
        sweeps: Any,
        tempering: Tempering,
        comparison: Comparison,
        observables: Observables,
        stride: int,
        held: HeldStates,
    ) -> None:
        import cupy

        self._sweeps, self._comparison, self._held, self._tempering = sweeps, comparison, held, tempering
        model, ladder = comparison.model, tempering.ladder
        by_temperature = model.samples, ladder.copies, ladder.temperatures
        pairs, axes = comparison.shape, comparison.axes
        links = pairs if comparison.full else (model.samples, 0, ladder.temperatures)
        self._fields = fields = Fields(
            energy=(by_temperature, np.float64),
            magnetization=(by_temperature, np.int64),
            overlap=(pairs, np.int64),
            link_overlap=(links, np.int64),
            modes=((model.samples, comparison.compared, axes), np.float64),
            exchange=((tempering.words.size,), np.int64),
            holder=(by_temperature, np.int32),
        )
        self._totals = TotalsInTurn(sweeps, clears=False)
        self._compared = cupy.cuda.Event(disable_timing=True)
        at, sizes = fields.words, fields.sizes
        counts = sizes["energy"], sizes["overlap"], sizes["link_overlap"], sizes["exchange"]
        places = (at[name] for name in ("energy", "magnetization", "holder", "overlap", "link_overlap", "exchange"))
        weights = (w % 2**64 for linear in observables for w in linear)
        self._sort = Launch(comparison.device, "by_temperature.cu", "sort_by_temperature", {
            "to": np.uint64(0), "room": struct(*places, *counts), "one": np.uint64(0), "other": np.uint64(0),
            "observables": struct(*weights, stride), "quantum": np.float64(model.quantum),
            "holder": tempering.holder, "replicas": np.uint32(ladder.replicas), "exchange": tempering.words,
            "sites": np.uint32(model.sites), "bonds": np.uint64(model.bonds),
        })  # fmt: skip
        self._grid = -(-max(counts) // THREADS), 1, 1

    def begin(self, counted: Totals, state: Any, read: Callable[[Any, int, int], Any]) -> Callable[[], Measurement]:
        """Ask for a measurement of the present state, whose counts are there; the function returned waits for it.

        Args:
            counted: Both sums of the state; they are cleared.
            state: On the device.
            read: Finds one configuration in such an array.
        """
        self._sweeps.wait_event(self._compared)  # a copy of the state may serve anew, whether it was read or not
        copy, spins = self._held.hold(state, read)
        totals = self._totals.take((1, self._fields.size))
        (to,) = totals.parts
        one, other = counted.parts
        self._sort(self._sweeps, self._grid, THREADS, to=to, one=one, other=other)
        address = {name: to + 8 * word for name, word in self._fields.words.items()}

        def compare(stream: Any) -> None:
            self._comparison.queue(stream, copy, address)
            self._compared.record(stream)

        fetched = self._totals.fetch(totals, compare)
        return lambda: self._read(fetched(), spins)

    def _read(self, words: Any, spins: Spins) -> Measurement:
        """The arrays of a buffer."""
        found = self._fields.split(words[0])
        correlations = Correlations(found["overlap"], found["link_overlap"], *self._comparison.by_kind(found["modes"]))
        exchange = self._tempering.split(found["exchange"])
        return Measurement(found["energy"], found["magnetization"], found["holder"], exchange, correlations, spins)
