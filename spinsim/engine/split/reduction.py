"""Measurements added up by the parts that make them: each has the sums of its own samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinsim.bits import Bits, packed_spins, unpacked_spins
from spinsim.engine.measuring.reduction import SAMPLE_AXIS, Reduced
from spinsim.engine.protocols import Configurations, Engine, LowestStates, Reduction
from spinsim.parallel.places import Kept, Reply, answers

if TYPE_CHECKING:
    from spinsim.engine.split.engine import Part


class SplitReduction:
    """A ``Reduction`` put together from those of parts, which have consecutive samples.

    Every number belongs to one sample, so that the sums of all parts, one after the other, are those of one device.

    Args:
        reduced: What is added up of all samples.

    Attributes:
        each: The reduction of each part, which stays there.
        measurements: How many have been asked to be added.

    Raises:
        InputError: where a device has no room.
    """

    def __init__(self, parts: Sequence[Part], reduced: Reduced) -> None:
        self.reduced, self.measurements, self._parts = reduced, 0, parts
        given = reduced.copies, reduced.places, reduced.terms, reduced.samples_in_run, reduced.energies or False
        self.each: list[Any] = answers([part.place.request(_reduction, part.engine, *given) for part in parts])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays by name."""
        states = self._all(_state)
        return {name: np.concatenate([one[name] for one in states], SAMPLE_AXIS.get(name, 0)) for name in states[0]}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to arrays that ``state`` returned, of any engine."""
        self._own(_restore, lambda share: {name: _cut(array, share, name) for name, array in arrays.items()})
        self.measurements = int(arrays["measurements"][0])

    def lowest(self) -> LowestStates:
        """Return the lowest states that measurements have met; those that are new come with it."""
        found: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], Bits, Any]] = self._all(_lowest)
        fresh: dict[int, Bits] = {}
        for part, (_, changed, rows, _) in zip(self._parts, found, strict=True):
            fresh.update(zip((part.share.start + changed).tolist(), rows, strict=True))

        def spins(sample: int) -> npt.NDArray[np.int8]:
            if sample in fresh:
                return unpacked_spins(fresh[sample], self.reduced.model.sites)
            k = next(k for k, part in enumerate(self._parts) if sample in part.share)
            part, others = self._parts[k], found[k][3]
            state: npt.NDArray[np.int8] = part.place.request(_spins, others, sample - part.share.start)()
            return state

        return LowestStates(np.concatenate([one[0] for one in found]), spins, np.array([*fresh], np.int64))

    def restore_lowest(self, energy: npt.NDArray[np.float64], spins: Configurations) -> None:
        """Go back to lowest energies (samples, replicas) and the configuration of each sample."""
        self._own(_restore_lowest, lambda share: (energy[share], spins[share]))

    def _all(self, function: Callable[..., Any]) -> list[Any]:
        return answers([part.place.request(function, own) for part, own in self._with_own()])

    def _own(self, function: Callable[..., Any], of: Callable[[slice], Any]) -> None:
        """Have a function carried out with what each part's samples have."""
        replies: list[Reply] = []
        for part, own in self._with_own():
            replies.append(part.place.request(function, own, of(slice(part.share.start, part.share.stop))))
        answers(replies)

    def _with_own(self) -> Sequence[tuple[Part, Any]]:
        return list(zip(self._parts, self.each, strict=True))


def _cut(array: npt.NDArray[Any], share: slice, name: str) -> npt.NDArray[Any]:
    return array[(*[slice(None)] * SAMPLE_AXIS.get(name, 0), share)]


def _reduction(engine: Engine, copies: int, places: int, terms: Any, samples: int, energies: Any) -> Kept:
    return Kept(engine.reduction(Reduced(engine.model, copies, places, terms, samples, energies)))


def _state(reduction: Reduction) -> dict[str, npt.NDArray[Any]]:
    return reduction.state()


def _restore(reduction: Reduction, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    reduction.restore(arrays)


def _lowest(reduction: Reduction) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], Bits, Kept]:
    """Lowest energies, the samples that have found a lower one, these configurations as bits, and what finds others."""
    energy, spins, changed = reduction.lowest()
    rows = [packed_spins(spins(sample)) for sample in changed.tolist()]
    return energy, changed, np.array(rows, np.uint8), Kept(spins)


def _spins(spins: Callable[[int], npt.NDArray[np.int8]], sample: int) -> npt.NDArray[np.int8]:
    return spins(sample)


def _restore_lowest(reduction: Reduction, state: tuple[npt.NDArray[np.float64], Configurations]) -> None:
    reduction.restore_lowest(*state)
