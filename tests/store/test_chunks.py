"""Chunks that several threads compress are such as HDF5's filters make."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from spinsim.store.datasets import Compressing, compressed


@pytest.mark.parametrize("kind", ["f8", "i8", "u1"])
@pytest.mark.parametrize(
    ("shape", "chunks"), [((5, 7), (2, 7)), ((5, 7), (2, 3)), ((3,), (3,)), ((900, 2, 70), (128, 2, 70))]
)
def test_hdf5_reads_chunks_and_finds_their_checksums(tmp_path, kind: str, shape, chunks) -> None:
    random = np.random.default_rng(1)
    size = np.dtype(kind).itemsize
    contents = {
        "zeros": np.zeros(shape, kind),
        "small": random.integers(0, 5, shape).astype(kind),
        "noise": random.integers(0, 256, (*shape[:-1], shape[-1] * size), np.uint8).view(kind),  # grows
    }
    with h5py.File(tmp_path / "a.h5", "w") as file, Compressing() as compressing:
        for name, values in contents.items():
            old = file.create_dataset(f"{name}-old", data=values)
            new = file.create_dataset(name, shape, kind, chunks=chunks, fletcher32=True, **compressed())
            compressing.fill(new, old)
    with h5py.File(tmp_path / "a.h5") as file:
        for name, values in contents.items():
            np.testing.assert_array_equal(file[name][...], values, strict=True)
            assert file[name].id.get_chunk_info(0).filter_mask == 0
