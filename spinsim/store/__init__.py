"""The HDF5 file of a run, schema ``spinsim/1``: at every moment a complete record, sealed by its SHA-256.

``files.py`` writes and reads records, ``hdf5.py`` converts them to HDF5, ``sealed.py`` handles the seal in front of the
HDF5 bytes, ``segments.py`` rows that exceed memory, ``models.py`` the model, and ``contents.py`` the series of jobs.
"""

from __future__ import annotations
