"""Compressed instance files: gzip and xz, told by their first bytes when read and by their suffix when written."""

from __future__ import annotations

import importlib
import io
import zlib
from pathlib import Path
from typing import Any, Final, NamedTuple

from spinsim.errors import InputError
from spinsim.machine.memory import require

ROOM_A_BYTE: Final = 16  # of text, while it is read
_AT_ONCE: Final = 2**20  # bytes of content that are unpacked before memory is looked at again


class Compression(NamedTuple):
    """A way to compress files."""

    name: str
    suffix: str  # of files that are compressed so
    magic: bytes  # their first bytes
    module: str  # module of the standard library, loaded where it is needed: some Pythons lack one
    options: dict[str, int]  # so that equal contents make equal files

    def compress(self, content: bytes) -> bytes:
        module = self._load(
            f"the suffix {self.suffix} asks for {self.name}", "give another suffix, such as .gz, or none"
        )
        compressed: bytes = module.compress(content, **self.options)
        return compressed

    def contents(self, data: bytes, name: str) -> bytes:
        """The content of a file in memory, all its parts; refused as soon as more unpacks than memory has room for."""
        module = self._load(f"{name} is packed by {self.name}", "unpack it, or take another Python")
        parts, size = [], 0
        try:
            with module.open(io.BytesIO(data)) as stream:
                while part := stream.read(_AT_ONCE):
                    size += len(part)
                    require(ROOM_A_BYTE * size, f"reading {name}", "give a smaller instance")
                    parts.append(part)
        except InputError:
            raise
        except (OSError, EOFError, zlib.error, ValueError, getattr(module, "LZMAError", EOFError)) as error:
            raise InputError(f"{name} is a damaged {self.name} file: take another copy of it") from error
        return b"".join(parts)

    def _load(self, reason: str, mend: str) -> Any:
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            raise InputError(f"{reason}, but this Python lacks the module {self.module}: {mend}") from error


_EVERY: Final = (
    Compression("gzip", ".gz", b"\x1f\x8b", "gzip", {"mtime": 0}),
    Compression("xz", ".xz", b"\xfd7zXZ\0", "lzma", {}),
)


def unpacked(data: bytes, path: Path, name: str) -> tuple[bytes, Path]:
    """The content of a file, compressed or not, and its path without the suffix of the compression."""
    for each in _EVERY:
        if data.startswith(each.magic):
            return each.contents(data, name), path.with_suffix("") if path.suffix.lower() == each.suffix else path
    return data, path


def by_suffix(path: Path) -> tuple[Compression | None, Path]:
    """The compression that a suffix asks for, and the path without that suffix."""
    chosen = next((each for each in _EVERY if path.suffix.lower() == each.suffix), None)
    return chosen, path.with_suffix("") if chosen else path
