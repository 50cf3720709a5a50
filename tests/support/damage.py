"""Damaged copies of files of runs, from a seed; as a program, it shows each to spinsim and says what came of it.

Each line of its standard input is ``FILE SEED COMMAND...`` and asks for one damaged copy and one command; each line of
its standard output is the JSON list of the kind of damage, the exit status, both streams, True if the command changed
the file, and False if it succeeded though numbers of the file are not those of the whole one.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import typer.main

Random = np.random.Generator


def damaged(content: bytes, seed: int, path: Path) -> str:
    """Write a damaged copy; returns the kind of damage."""
    random = np.random.default_rng(seed)
    if random.random() < 0.6:
        what = BYTES[random.integers(len(BYTES))]
        path.write_bytes(what(bytearray(content), random))
    else:
        what = PARTS[random.integers(len(PARTS))]
        path.write_bytes(content)
        with h5py.File(path, "r+", locking=False) as file:
            what(file, random)
    return what.__name__


def flip_a_bit(data: bytearray, random: Random) -> bytes:
    data[random.integers(len(data))] ^= 1 << random.integers(8)
    return bytes(data)


def flip_a_bit_that_is_used(data: bytearray, random: Random) -> bytes:
    used = np.flatnonzero(np.frombuffer(data, np.uint8))
    data[random.choice(used)] ^= 1 << random.integers(8)
    return bytes(data)


def flip_many(data: bytearray, random: Random) -> bytes:
    for at in random.integers(len(data), size=200):
        data[at] ^= 1 << random.integers(8)
    return bytes(data)


def blank(data: bytearray, random: Random) -> bytes:
    at = random.integers(len(data))
    piece = data[at : at + 512]
    if not any(piece):
        return flip_a_bit(data, random)
    data[at : at + 512] = bytes(len(piece))
    return bytes(data)


def copy_elsewhere(data: bytearray, random: Random) -> bytes:
    here, there = random.integers(len(data) - 512, size=2)
    if data[there : there + 512] == data[here : here + 512]:
        return flip_a_bit(data, random)
    data[there : there + 512] = data[here : here + 512]
    return bytes(data)


def swap(data: bytearray, random: Random) -> bytes:
    """Exchange two pieces of equal length."""
    length = int(random.integers(8, 512))
    here, there = random.integers(len(data) - length, size=2)
    if abs(here - there) >= length and data[here : here + length] != data[there : there + length]:
        one, other = data[here : here + length], data[there : there + length]
        data[here : here + length], data[there : there + length] = other, one
        return bytes(data)
    return flip_a_bit(data, random)


def flip_in_the_seal(data: bytearray, random: Random) -> bytes:
    data[random.integers(512)] ^= 1 << random.integers(8)
    return bytes(data)


def flip_in_a_header(data: bytearray, random: Random) -> bytes:
    """One bit near a mark of HDF5."""
    kinds = rb"OHDR|GCOL|FADB|FAHD|OCHK|\x89HDF|FRHP|FHDB|BTHD|BTLF"
    marks = [found.start() for found in re.finditer(kinds, bytes(data))]
    data[min(random.choice(marks) + random.integers(64), len(data) - 1)] ^= 1 << random.integers(8)
    return bytes(data)


def flip_and_add(data: bytearray, random: Random) -> bytes:
    """Damage behind a sign of additions."""
    return flip_in_a_header(data, random) + random.bytes(64)


def become_text(data: bytearray, random: Random) -> bytes:
    return b"dear reader, " * int(random.integers(0, 1000))


def cut_short(data: bytearray, random: Random) -> bytes:
    return bytes(data[: random.integers(len(data))])


def add_noise(data: bytearray, random: Random) -> bytes:
    return bytes(data) + random.bytes(100)


def parts_of(file: h5py.File, kind: type) -> list[Any]:
    """All groups or datasets."""
    names: list[str] = []
    file.visit(names.append)
    return [file[name] for name in names if isinstance(file[name], kind)]


def pick(file: h5py.File, random: Random, kind: type = h5py.Dataset) -> Any:
    """One of them."""
    found = parts_of(file, kind)
    return found[random.integers(len(found))]


def take_away(file: h5py.File, random: Random) -> None:
    del file[pick(file, random, h5py.Dataset if random.random() < 0.8 else h5py.Group).name]


def rename(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    file.move(name, name[:-1] + "x")


def replace(file: h5py.File, random: Random, value: Any = None, **how: Any) -> None:
    """Put something else in the place of a dataset."""
    name = pick(file, random).name
    if value is None:
        value = [np.zeros(3), 5, "text", np.zeros((1, 1, 1, 1, 1, 1)), h5py.Empty("f8"), np.array(["a", "b"], "S1")][
            random.integers(6)
        ]
    del file[name]
    file.create_dataset(name, data=value, **how)


def retype(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    value, dtype = file[name][...], ["f4", "i1", ">i8", "u8", "c16", "f8"][random.integers(6)]
    del file[name]
    file[name] = np.zeros(value.shape, dtype)


def reshape(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    value = file[name][...]
    del file[name]
    file[name] = value[..., :-1] if value.ndim and random.random() < 0.5 else value[None]


def make_a_group(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    del file[name]
    file.create_group(name)


def make_a_dataset(file: h5py.File, random: Random) -> None:
    name = pick(file, random, h5py.Group).name
    del file[name]
    file[name] = 1.0


def link_softly(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    file.move(name, "/elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def link_outside(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    del file[name]
    file[name] = h5py.ExternalLink("/dev/zero", name)


def store_outside(file: h5py.File, random: Random) -> None:
    item = pick(file, random)
    name, shape, dtype = item.name, item.shape, item.dtype
    del file[name]
    file.create_dataset(name, shape, dtype, external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)])


def make_virtual(file: h5py.File, random: Random) -> None:
    item = pick(file, random)
    name, source = item.name, h5py.VirtualSource(item)
    contents = h5py.VirtualLayout(item.shape, item.dtype)
    if item.shape:
        contents[...] = source
    del file[name]
    file.create_virtual_dataset(name, contents)


def take_an_attribute(file: h5py.File, random: Random) -> None:
    item = [file, file["model"]][random.integers(2)]
    del item.attrs[list(item.attrs)[random.integers(len(item.attrs))]]


def change_an_attribute(file: h5py.File, random: Random) -> None:
    item = [file, file["model"]][random.integers(2)]
    name = list(item.attrs)[random.integers(len(item.attrs))]
    values = ["", "é\n", 7, -1, 1e300, np.nan, np.arange(3), b"\xff\xfe", 2**40, np.zeros(0), h5py.Empty("S1"), "{}"]
    item.attrs[name] = values[random.integers(len(values))]


def change_the_configuration(file: h5py.File, random: Random) -> None:
    text = file.attrs["config"]
    at = random.integers(len(text))
    file.attrs["config"] = [text[:at], text[:at] + "9" + text[at + 1 :], "[]", '{"anneal":3,"temper":[],"transfer":0}',
                            "[" * 100_000, text.replace("{", '{"run":null,', 1)][random.integers(6)]  # fmt: skip


def change_the_job(file: h5py.File, random: Random) -> None:
    file.attrs["job"] = ["anneal", "temper", "transfer", "quantum", ""][random.integers(5)]


def change_numbers(file: h5py.File, random: Random) -> None:
    item = pick(file, random)
    if item.size and item.dtype.kind in "iuf":
        value = item[...]
        kinds = [-1, 10**6, 2**31 - 1, 0] if item.dtype.kind in "iu" else [np.nan, np.inf, -1.0, 0.0]
        limit = np.iinfo(item.dtype).max if item.dtype.kind in "iu" else np.inf
        number = np.array(min(kinds[random.integers(4)], limit)).astype(item.dtype)
        value.reshape(-1)[random.integers(value.size)] = number
        item[...] = value


def make_huge(file: h5py.File, random: Random) -> None:
    name = pick(file, random).name
    del file[name]
    shape = [(2**60,), (2**31, 2), (2**20, 2**20)][random.integers(3)]
    file.create_dataset(name, shape, ["i8", "f8", "i4"][random.integers(3)], chunks=tuple(min(n, 64) for n in shape))


BYTES: Final[list[Callable[[bytearray, Random], bytes]]] = [
    flip_a_bit,
    flip_a_bit_that_is_used,
    flip_a_bit_that_is_used,
    flip_many,
    blank,
    copy_elsewhere,
    swap,
    flip_in_the_seal,
    flip_in_a_header,
    flip_in_a_header,
    flip_and_add,
    become_text,
    cut_short,
    add_noise,
]
PARTS: Final[list[Callable[[h5py.File, Random], None]]] = [
    take_away,
    rename,
    replace,
    retype,
    reshape,
    make_a_group,
    make_a_dataset,
    link_softly,
    link_outside,
    store_outside,
    make_virtual,
    take_an_attribute,
    change_an_attribute,
    change_the_configuration,
    change_the_job,
    change_numbers,
    make_huge,
]


def shown(path: Path, command: list[str]) -> list[Any]:
    """Outcome of a command on a file: exit status, standard output and error, True if it has changed the file."""
    from spinsim.cli import main

    before = path.read_bytes()
    sys.argv = ["spinsim", command[0], str(path), *command[1:]]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            status: Any = 0
        except SystemExit as leaving:
            status = leaving.code
        except BaseException as error:
            import traceback

            status = "".join(traceback.format_exception(error)[-3:])
    return [status, out.getvalue(), err.getvalue(), path.read_bytes() != before]


def has_numbers_of(path: Path, whole: Path) -> bool:
    """True if a file has all arrays and attributes of another one, but for axes without coordinates."""
    same = []

    def compare(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if item.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension but not"):
            return
        other = file[name]
        if isinstance(item, h5py.Dataset):
            same.append((item.dtype, item.shape) == (other.dtype, other.shape) and _bytes(item) == _bytes(other))
        same.extend(_bytes(item.attrs[key]) == _bytes(other.attrs[key]) for key in item.attrs if key not in _SCALES)

    with h5py.File(path, "r", locking=False) as file, h5py.File(whole, "r", locking=False) as original:
        compare("/", original)
        original.visititems(compare)
    return all(same)


_SCALES = {"DIMENSION_LIST", "REFERENCE_LIST"}


def _bytes(value: Any) -> bytes:
    return value[...].tobytes() if isinstance(value, h5py.Dataset) else repr(np.asarray(value).tolist()).encode()


def forbid_forks() -> None:
    """Reading a file needs no process of its own."""

    def fork() -> int:
        raise AssertionError("a fork")

    os.fork = fork


if __name__ == "__main__":
    forbid_forks()
    typer.main.get_command = functools.cache(typer.main.get_command)  # parsers are made once, not for each case
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        name, seed, *command = line.split()
        file = Path("damaged.h5")
        kind = damaged(Path(name).read_bytes(), int(seed), file)
        is_damaged = file.read_bytes() != Path(name).read_bytes()
        answer = shown(file, command)
        intact = not is_damaged or answer[0] != 0 or has_numbers_of(file, Path(name))
        print(json.dumps([kind if is_damaged else "nothing", *answer, intact]), file=answers)
