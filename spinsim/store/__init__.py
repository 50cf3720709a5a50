"""The HDF5 file of a run, schema ``spinsim/1``: a whole record at every moment, sealed by its SHA-256.

``files.py`` writes and reads records, ``hdf5.py`` turns them into HDF5, ``sealed.py`` has the bytes in front of it,
``segments.py`` rows that grow beyond memory, ``models.py`` the model, and ``contents.py`` the series of jobs.
"""

from __future__ import annotations
