"""The group /configurations: the spins of all replicas at every so many-th row of a run, a bit each.

Bit b of byte k is site 8 k + b, set where the spin is +1; bits past the last site are 0. Replicas stand in the order of
their copies and temperatures, whatever configurations they exchanged before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import h5py
import numpy as np

from spinsim.bits import spins_up
from spinsim.store.contents import BITS, BYTE, EVERY, MEASUREMENTS, Contents, Series
from spinsim.store.datasets import pieces
from spinsim.store.forms import DamageError, group_of, number_of
from spinsim.store.row_checksums import CHECKSUM

CONFIGURATIONS: Final = "configurations"
"""The group, and what runs without a file call the same."""


def with_configurations(contents: Contents, every: int, sites: int) -> Contents:
    """Returns contents that have room for configurations too, of all replicas that the first series is measured of.

    Beside the spins stands what says where a row of the measurements stands, such as its temperature, and the sweeps
    done.

    Args:
        contents: Contents of a file without them.
        every: Rows of the run for each saved one; 0 where none are saved: the contents stay as it is.
        sites: Sites of a configuration.
    """
    if not every:
        return contents
    measured = {series.name: series for series in contents.series if series.group == MEASUREMENTS}
    sweep = Series("sweep", (), np.int64, "sweeps done")
    series = (
        Series("step", (), np.int64, "saved row"),
        Series("measurement", (), np.int64, "row of /measurements of the same moment"),
        *({"sweep": sweep} | {name: measured[name] for name in contents.coordinates(MEASUREMENTS)}).values(),
        Series("spins", (*next(one.axes for one in measured.values() if one.axes), BYTE), np.uint8, f"spins, {BITS}"),
    )
    return replace(
        contents,
        scales={**contents.scales, BYTE: np.arange(-(-sites // 8))},
        series=(*contents.series, *(one._replace(group=CONFIGURATIONS) for one in series)),
        numbers={**contents.numbers, CONFIGURATIONS: {EVERY: every, "sites": sites}},
    )


def with_saved(contents: Contents, file: h5py.File, sites: int) -> Contents:
    """Returns the contents of a file together with the configurations that it holds, if any.

    Args:
        contents: Contents that it should have without them.
        file: Open for reading.
        sites: Sites of its model, of which a configuration has a multiple.
    """
    if CONFIGURATIONS not in file:
        return contents
    every, own = (int(number_of(group_of(file, CONFIGURATIONS), name, "iu")) for name in (EVERY, "sites"))
    if every < 1 or own < 1 or own % sites:
        raise DamageError(f"its configurations are said to be of {own} sites, saved at every {every}th row")
    return with_configurations(contents, every, own)


def check_configurations(file: h5py.File, rows: int) -> None:
    """Refuse configurations that are not those of the measurements: of other rows, or with other sums of spins.

    Args:
        file: Whose schema has been checked.
        rows: Rows of the run that are complete.
    """
    if CONFIGURATIONS not in file:
        return
    group, measured = file[CONFIGURATIONS], file[MEASUREMENTS]
    every, sites = (int(group.attrs[name]) for name in (EVERY, "sites"))
    spins, own = group["spins"], rows // every
    at = np.arange(every - 1, rows, every)
    for name in set(group) & set(measured) - {"step", "spins", CHECKSUM}:
        if not group[name].is_scale and not np.array_equal(group[name][:own], measured[name][...][at]):
            raise DamageError(f"{name} of its configurations is not that of its measurements")
    if not np.array_equal(group["measurement"][:own], at):
        raise DamageError("the configurations are not numbered by every so many-th measurement")
    for piece in pieces([spins], own):
        bits = spins[piece]
        sums = 2 * spins_up(bits) - sites
        if sites % 8 and (bits[..., -1] >> np.uint8(sites % 8)).any():
            raise DamageError("its configurations have bits set past the last site")
        if any((sums[k] != measured["magnetization"][at[piece.start + k]]).any() for k in range(len(bits))):
            raise DamageError("its configurations do not have the sums of spins that were measured")
