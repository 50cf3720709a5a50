"""Reading all of a run's file, and comparing what it holds with the identity of the run."""

from __future__ import annotations

from pathlib import Path

from spinsim import store
from spinsim.machine.files import is_locked
from spinsim.run.identity import check_stored


def verify(path: Path) -> str:
    """Read all of a file; what can be said of it in a few words.

    Raises:
        InputError: for a file that is missing, damaged, or not of spinsim.
    """
    written = is_locked(path)
    with store.open_to_read(path) as file:
        attributes, rows = store.text_attributes(file), store.complete_rows(file)
        summed = store.verify(file, written)
        model_sha256 = store.read_model(file).content_sha256()
    if attributes["config_sha256"]:  # results that were put together by hand have none
        check_stored(path, attributes, model_sha256)
    if written:
        return f"whole as far as it is: {rows} rows, another process writes it"
    state = "finished" if "finished" in attributes else "not finished"
    return f"whole, {state}: {rows} rows" + ("" if summed else ", which carry no checksums of their own")
