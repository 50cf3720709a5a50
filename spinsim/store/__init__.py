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

from spinsim.store.appending import RunFile as RunFile
from spinsim.store.appending import open_to_append as open_to_append
from spinsim.store.checkpoints import last_saved as last_saved
from spinsim.store.contents import arrays_of_best as arrays_of_best
from spinsim.store.creating import create as create
from spinsim.store.creating import stamp as stamp
from spinsim.store.datasets import scale_attributes as scale_attributes
from spinsim.store.finishing import extend as extend
from spinsim.store.models import as_shown as as_shown
from spinsim.store.models import best_of as best_of
from spinsim.store.models import lists_bonds as lists_bonds
from spinsim.store.models import read_model as read_model
from spinsim.store.models import read_start as read_start
from spinsim.store.models import stored_bytes as stored_bytes
from spinsim.store.reading import check_replaceable as check_replaceable
from spinsim.store.reading import check_room as check_room
from spinsim.store.reading import complete_rows as complete_rows
from spinsim.store.reading import open_to_read as open_to_read
from spinsim.store.reading import read_attributes as read_attributes
from spinsim.store.reading import text_attributes as text_attributes
from spinsim.store.reading import verify as verify
