"""What results of all jobs have."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from spinsim.errors import InputError


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


def import_xarray() -> ModuleType:
    """The xarray module.

    Raises:
        InputError: where it is not installed.
    """
    try:
        import xarray
    except ImportError as error:
        raise InputError("xarray is missing: install spinsim[xarray] to use dataset()") from error
    return xarray
