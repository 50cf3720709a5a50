"""The HDF5 file of a run: schema ``spinsim/1``, created at once or not at all, appended row by row.

A file is written complete with its model under a temporary name and then linked to its own, so it never exists half
made and never replaces another. A process killed at any instant leaves a file that opens and holds the rows up to one
of its last flushes: room for every planned row is set aside at creation (sparse, so it takes no disk), and appending
writes the rows in place and then, each at one stroke, the lengths of the series; no index, heap or superblock changes.
When the run is finished its file is packed: written anew beside itself, compressed, with a Fletcher32 checksum on every
dataset and without what only an unfinished run needs; the packed one, which alone says ``finished``, takes the place of
the other at one stroke. Datasets carry no time stamps: equal runs make equal files but for the stamps in the root
attributes.
"""

from __future__ import annotations

from spinsim.store.appending import RunFile, open_to_append
from spinsim.store.checkpoints import last_saved
from spinsim.store.contents import arrays_of_best
from spinsim.store.creating import create, stamp
from spinsim.store.datasets import scale_attributes
from spinsim.store.extending import extend
from spinsim.store.forms import DamageError
from spinsim.store.models import as_shown, best_of, identity, lists_bonds, read_model, read_start, stored_bytes
from spinsim.store.reading import (
    SCHEMA,
    check_replaceable,
    check_room,
    complete_rows,
    open_to_read,
    read_attributes,
    text_attributes,
    verify,
)

__all__ = [
    "SCHEMA",
    "DamageError",
    "RunFile",
    "arrays_of_best",
    "as_shown",
    "best_of",
    "check_replaceable",
    "check_room",
    "complete_rows",
    "create",
    "extend",
    "identity",
    "last_saved",
    "lists_bonds",
    "open_to_append",
    "open_to_read",
    "read_attributes",
    "read_model",
    "read_start",
    "scale_attributes",
    "stamp",
    "stored_bytes",
    "text_attributes",
    "verify",
]
