"""Records and their files: read back as they were, equal bytes for equal records, and no altered byte unnoticed."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import spinsim as ss
from spinsim.errors import InputError
from spinsim.machine.files import Disk
from spinsim.record import Array, Record
from spinsim.run import identity
from spinsim.store import files, sealed

RANDOM = np.random.default_rng(1)


def sample() -> Record:
    """A record with arrays of every kind."""
    measurements = {
        "temperature": Array(np.array([1.0, 2.0]), ("temperature",), "temperature", "coupling unit / k_B"),
        "sector": Array(np.array([b"even", b"odd"]), ("sector",), "sector"),
        "energy": Array(np.arange(6.0).reshape(3, 2), ("step", "temperature"), "energy", "coupling unit"),
        "spins": Array(np.array([[1, -1, 1]], np.int8), ("sample", "site")),
        "bits": Array(np.arange(4, dtype=np.uint8), ("byte",)),
        "nothing": Array(np.empty((0, 2)), ("row", "temperature")),
        "number": Array(np.array(2**63 + 1, np.uint64)),
        "equal": Array(np.broadcast_to(np.float64(-1.5), (4, 1000)), ("sample", "bond"), "couplings"),
        "missing": Array(np.array([np.nan, np.inf, -0.0]), ("place",)),
        "flag": Array(np.array([True, False]), ("temperature",)),
    }
    below = Record({"text": "é", "none": ""}, {"square": Array(np.eye(2), ("length_2", "length_2_2"))})
    attributes = {"job": "anneal", "shape": (3, 4), "whole": 7, "seed": np.uint64(2**64 - 1), "is": True, "one": 0.1}
    return Record(attributes, {}, {"measurements": Record({"every": 2}, measurements, {"below": below})})


def assert_same(one: Record, other: Record) -> None:
    assert [path for path, _ in one.paths()] == [path for path, _ in other.paths()]
    for (path, mine), (_, theirs) in zip(one.paths(), other.paths(), strict=True):
        assert mine[1:] == theirs[1:], path
        np.testing.assert_array_equal(mine.values, theirs.values, strict=True)
    for name in one.attributes:
        np.testing.assert_array_equal(one.attributes[name], other.attributes[name])
    for name, group in one.groups.items():
        assert_same(group, other.groups[name])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    files.save_new(tmp_path / "a.h5", sample())
    return tmp_path / "a.h5"


def ordered(record: Record) -> Record:
    """The record with names in the order of the alphabet, as HDF5 lists them."""
    groups = {name: ordered(record.groups[name]) for name in sorted(record.groups)}
    return Record(record.attributes, {name: record.arrays[name] for name in sorted(record.arrays)}, groups)


def test_a_record_is_read_back_as_it_was(path: Path) -> None:
    assert_same(ordered(sample()), files.read(path))
    assert files.read_and_compare(path)[1]


def test_equal_records_make_equal_bytes(path: Path, tmp_path: Path) -> None:
    files.save_new(tmp_path / "b.h5", sample())
    assert (tmp_path / "b.h5").read_bytes() == path.read_bytes()
    files.save_new(tmp_path / "c.h5", files.read(path))
    assert (tmp_path / "c.h5").read_bytes() == path.read_bytes()


def test_large_records_are_written_piece_by_piece_with_the_same_bytes(path: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_IN_MEMORY", 0)
    files.save_new(tmp_path / "b.h5", sample())
    assert (tmp_path / "b.h5").read_bytes() == path.read_bytes()


def test_the_seal_says_what_lies_behind_it(path: Path) -> None:
    content = path.read_bytes()
    sha256 = hashlib.sha256(content[512:]).hexdigest()
    assert content.startswith(f"spinsim/1 sha256={sha256} bytes={len(content) - 512} parts=".encode())
    assert content[512:520] == b"\x89HDF\r\n\x1a\n"
    with path.open("rb") as file:
        assert sealed.seal_of(file).sha256 == sealed.digest_of(file) == sha256


def test_large_files_are_hashed_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr(sealed, "_PIECE", 1000)
    content = np.random.default_rng(1).bytes(512 + 2500)
    pieces = [hashlib.sha256(content[start : start + 1000]).digest() for start in (512, 1512, 2512)]
    assert sealed.digest_of(io.BytesIO(content)) == hashlib.sha256(b"".join(pieces)).hexdigest()
    assert sealed.digest_of(io.BytesIO(content[:1512])) == pieces[0].hex()
    assert sealed.digest_of(io.BytesIO(content[:512])) == hashlib.sha256(b"").hexdigest()


def test_equal_numbers_take_no_room(tmp_path: Path) -> None:
    equal = Array(np.broadcast_to(np.float64(2.0), (1000, 2**30)), ("sample", "bond"))
    files.save_new(tmp_path / "a.h5", Record({"job": "anneal"}, {"couplings": equal}))
    assert (tmp_path / "a.h5").stat().st_size < 10_000
    found = files.read(tmp_path / "a.h5")["couplings"]
    assert (found.shape, found.strides, found[5, 7]) == ((1000, 2**30), (0, 0), 2.0)


def test_every_altered_byte_comes_to_light(path: Path) -> None:
    content = path.read_bytes()
    for at in [*range(0, 512, 3), *range(512, len(content), 41), len(content) - 1]:
        altered = bytearray(content)
        altered[at] ^= 1 << at % 8
        path.write_bytes(altered)
        with pytest.raises(InputError, match=r"is damaged|has schema spinsim/"):
            identity.verify(path)


def test_every_other_length_comes_to_light(path: Path) -> None:
    content = path.read_bytes()
    for length in [*range(0, 700, 20), *range(700, len(content), 701), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="is damaged"):
            files.read(path)
    path.write_bytes(content + b"\0")
    assert not files.read_and_compare(path)[1]
    assert not files.has_additions(path)
    with pytest.raises(InputError, match="is damaged, though no number has changed"):
        identity.verify(path)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: path.unlink(), "a.h5 is not there: give the path of a spinsim file"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "a.h5 is a directory: give a file that spinsim wrote"),
    "empty": (
        lambda path: path.write_bytes(b""),
        "a.h5 is not a file of spinsim, or is damaged at",
    ),
    "text": (lambda path: path.write_text("dear reader\n" * 100), "a.h5 is not a file of spinsim"),
    "unsealed": (
        lambda path: path.write_bytes(path.read_bytes()[512:]),
        "a.h5 is an HDF5 file without the seal of spinsim 1.0: give a file of this version, or use h5py",
    ),
    "another schema": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"spinsim/1 ", b"spinsim/2 ", 1)),
        "a.h5 has schema spinsim/2, this version of spinsim reads spinsim/1: use a newer spinsim",
    ),
    "a pipe": (
        lambda path: (path.unlink(), os.mkfifo(path)),
        "a.h5 is a pipe or a device, which may",
    ),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
@pytest.mark.parametrize("kind", WRONG)
def test_other_files_are_refused(path: Path, kind: str) -> None:
    make, words = WRONG[kind]
    make(path)
    with pytest.raises(InputError, match=words):
        files.read(path)


def test_a_job_of_another_version_and_a_record_that_is_no_run(tmp_path: Path) -> None:
    files.save_new(tmp_path / "a.h5", Record({"job": "dream"}))
    files.save_new(tmp_path / "b.h5", Record({"a": 1}))
    with pytest.raises(InputError, match="holds a run of dream, a job that this version of spinsim lacks: use a newer"):
        ss.load(tmp_path / "a.h5")
    with pytest.raises(InputError, match="has rows of a run and is no run itself: give the run's file"):
        ss.load(tmp_path / "b.h5")


ADDED: dict[str, Callable[[h5py.File], object]] = {
    "a dataset": lambda file: file.create_dataset("measurements/mine", data=np.arange(3.0)),
    "a group": lambda file: file.create_dataset("notes/deep/text", data=np.array(["é"], h5py.string_dtype())),
    "an attribute": lambda file: file.attrs.update({"project": "a"}),
    "an attribute of a group": lambda file: file["measurements/below"].attrs.update({"project": [1, 2]}),
    "an attribute of an array": lambda file: file["measurements/energy"].attrs.update({"project": 1}),
    "a number": lambda file: file.attrs.update({"project": 1}),
    "a link": lambda file: file.__setitem__("nowhere", h5py.SoftLink("/nothing")),
    "a reference": lambda file: file["measurements/energy"].dims[0].attach_scale(_scale(file)),
}
CHANGED: dict[str, Callable[[h5py.File], object]] = {
    "a number": lambda file: file["measurements/energy"].__setitem__((0, 0), 9.0),
    "a constant": lambda file: file["measurements/equal"].__setitem__((0, 0), 9.0),
    "an attribute": lambda file: file.attrs.update({"whole": 8}),
    "an attribute of a group": lambda file: file["measurements"].attrs.update({"every": 3}),
    "units": lambda file: file["measurements/energy"].attrs.update({"units": "J"}),
    "a lost dataset": lambda file: file.__delitem__("measurements/bits"),
    "a lost group": lambda file: file.__delitem__("measurements/below"),
    "a lost attribute": lambda file: file.attrs.__delitem__("job"),
    "the list": lambda file: file.attrs.update({"parts": '{"groups": {}, "arrays": []}'}),
    "another name": lambda file: file.move("measurements/bits", "measurements/bytes"),
    "another type": lambda file: _retyped(file, "measurements/energy"),
}


def _scale(file: h5py.File) -> h5py.Dataset:
    own = file.create_dataset("own", data=np.arange(3))
    own.make_scale("own")
    return own


def _retyped(file: h5py.File, name: str) -> None:
    values = file[name][...]
    del file[name]
    file[name] = values.astype(np.float32)


@pytest.mark.parametrize("addition", ADDED)
def test_a_record_to_which_a_user_added_something_is_known(path: Path, addition: str) -> None:
    assert not files.has_additions(path)
    with h5py.File(path, "r+") as file:
        ADDED[addition](file)
    record, is_whole = files.read_and_compare(path)
    assert not is_whole
    assert files.has_additions(path)
    np.testing.assert_array_equal(record["measurements/energy"], np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize("change", CHANGED)
def test_a_record_in_which_a_user_changed_something_is_refused(path: Path, change: str) -> None:
    with h5py.File(path, "r+") as file:
        CHANGED[change](file)
    with pytest.raises(InputError, match="damaged, "):
        files.read(path)


def test_damage_of_an_addition_does_no_harm(path: Path) -> None:
    """A bit that changes within a dataset of the user's own is nothing that spinsim answers for."""
    with h5py.File(path, "r+") as file:
        file["mine"] = RANDOM.random(1000)
        at = file["mine"].id.get_offset() + 4000
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert not files.read_and_compare(path)[1]


def test_nothing_is_overwritten(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"a\.h5 exists and is never overwritten: choose another path"):
        files.save_new(path, sample())
    assert path.read_bytes() == before


def test_a_record_replaces_the_one_before_at_one_stroke(path: Path) -> None:
    before, old = path.read_bytes(), path.open("rb")
    with files.open_to_write(path) as file:
        file.write(Record({"job": "anneal"}))
    assert old.read() == before  # for those who had it open
    old.close()
    assert files.read(path).attributes["job"] == "anneal"
    assert [one.name for one in path.parent.iterdir()] == ["a.h5"]


def test_writing_goes_on_beside_the_caller_and_its_error_is_raised_later(path: Path, monkeypatch) -> None:
    def fail(self: Disk, data: bytes) -> int:
        raise OSError("no room")

    before = path.read_bytes()

    def write() -> None:
        with files.open_to_write(path) as file:
            monkeypatch.setattr(Disk, "write", fail)
            file.write(Record({"job": "anneal"}), wait=False)
            file.flush()

    with pytest.raises(InputError, match=r"a\.h5 cannot be written \(no room\)"):
        write()
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["a.h5"]


def test_arrays_of_a_record_are_found_by_their_paths() -> None:
    record = sample()
    assert "measurements/energy" in record
    assert "measurements/below" in record
    assert "measurements/below/square" in record
    assert "nowhere/energy" not in record
    assert record.get("nowhere/energy") is None
    with pytest.raises(KeyError):
        record["nowhere/energy"]
    record.put("new/group/name", Array(np.zeros(2), ("a",)))
    assert record["new/group/name"].tolist() == [0, 0]
    assert record.group("nowhere").arrays == {}
    other = record.replaced({"measurements/energy": np.zeros((3, 2))})
    assert (other["measurements/energy"].sum(), record["measurements/energy"].sum()) == (0, 15)
    other.groups["measurements"].attributes["every"] = 5
    assert record.groups["measurements"].attributes["every"] == 2
    assert_same(pickle.loads(pickle.dumps(record)), record)  # noqa: S301  (our own)


def test_attributes_may_be_worked_out_when_they_are_asked_for() -> None:
    asked = []
    record = Record(lambda: asked.append(0) or {"a": 1})
    copy = record.copy()
    assert not asked
    assert (record.attributes, record.attributes, copy.attributes) == ({"a": 1}, {"a": 1}, {"a": 1})
    assert len(asked) == 2


def test_heaps_that_hdf5_would_never_get_past(path: Path) -> None:
    """Two altered bytes held all readers for ever, deaf to Ctrl-C."""
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    at = heap + 16
    while (index := int.from_bytes(data[at : at + 2], "little")) != 0:
        at += 16 + -(-int.from_bytes(data[at + 8 : at + 16], "little") // 8) * 8
    assert (index, any(data[at + 8 : at + 16])) == (0, True)
    data[at + 8 : at + 16] = bytes(8)
    path.write_bytes(data + b"added")
    with pytest.raises(InputError, match="is damaged"):
        files.read(path)
