"""What results of all jobs have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spinsim.errors import InputError
from spinsim.layout import Series

if TYPE_CHECKING:
    import xarray


class Result:
    """What results of all jobs have, read off the root attributes of their files."""

    attributes: dict[str, str]

    @property
    def config(self) -> dict[str, Any]:
        """The run's parameters."""
        return dict(json.loads(self.attributes.get("config", "{}")))

    @property
    def finished(self) -> bool:
        """Whether the run went on to its end."""
        return "finished" in self.attributes

    @property
    def _origin(self) -> dict[str, str]:
        """The attributes that a new file of the same run begins with."""
        return {key: value for key, value in self.attributes.items() if key not in ("created", "finished")}

    def _labelled(
        self, values: Iterable[tuple[Series, Any]], rows: tuple[str, ...], coordinates: Mapping[str, Any]
    ) -> xarray.Dataset:
        """Series with a row for each of ``rows`` as an xarray dataset."""
        variables = {
            series.name: ((*rows, *series.axes), value, {"long_name": series.long_name, "units": series.units})
            for series, value in values
        }
        dataset: xarray.Dataset = _import_xarray().Dataset(
            variables, coords=dict(coordinates), attrs=dict(self.attributes)
        )
        return dataset


def _import_xarray() -> ModuleType:
    """The xarray module.

    Raises:
        InputError: where it is not installed.
    """
    try:
        import xarray
    except ImportError as error:
        raise InputError("xarray is missing: install spinsim[xarray] to use dataset()") from error
    return xarray
