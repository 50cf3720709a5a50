"""Machine code of kernels on disk: a process that finds it does not load Numba, which would take half a second.

A file holds one kernel for arguments of certain types: the SHA-256 of the rest, then a pickled pair of a stamp (sources
and versions that the code was made from) and its ``MachineCode``. A file that is empty, truncated, changed or out of
date is ignored, and the kernel is compiled anew.

A file that others could have written is ignored too. File and folder must belong to the user, root or the package's
owner. Each is opened once, and owner and permissions are checked on the open file: nobody can exchange it afterwards.
Windows has no such owners; it protects the folders of a user by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib
import os
import pickle
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final, NamedTuple

_ROOT: Final = Path(__file__).parents[1]
_MAKING: Final = ("machine.compiler", "machine.intrinsics")  # modules that determine how all kernels are compiled
_IMPORT: Final = re.compile(rb"^[ \t]*from spinsim\.?([\w.]*) import[ \t]*(\([^)]*\)|.*)", re.M)
_IMPORTED_NAME: Final = re.compile(rb"(\w+)(?:[ \t]+as[ \t]+\w+)?[ \t]*(?:,|\)|#|$)", re.M)
_COMPILED: Final = re.compile(rb"^@(?:kernel|real_kernel|part|body|inlined|intrinsic)$", re.M)


@cache
def source_digest(module: str) -> str:
    """SHA-256 of all source files from which the kernels of a module inline code or take constants."""
    return hashlib.sha256(b"".join(_digest_of_file(path) for path in sorted(sources(module)))).hexdigest()


@cache
def sources(module: str) -> frozenset[Path]:
    """Find the source files of a module's kernels: its own file, and recursively the files that it imports from."""
    files: set[Path] = set()
    left = [_file(name) for name in (module.removeprefix("spinsim."), *_MAKING)]
    while left:
        path = left.pop()
        if path not in files:
            files.add(path)
            left += _imported(path)
    return frozenset(files)


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files that a file imports compiled functions or constants (names in capitals) from."""
    files: list[Path] = []
    for home, listed in _IMPORT.findall(_content(path)):
        names = [name.decode() for name in _IMPORTED_NAME.findall(listed)]
        module = _file(home.decode())
        if any(name.isupper() for name in names) or _COMPILED.search(_content(module)):
            files.append(module)
        inside = (_file(f"{home.decode()}.{name}".lstrip(".")) for name in names if module.name == "__init__.py")
        files += [file for file in inside if file.name != "__init__.py" and file.is_file()]
    return tuple(files)


def _file(module: str) -> Path:
    """Return the file of a module, given without ``spinsim.``; empty folders of earlier versions are ignored."""
    path = _ROOT.joinpath(*module.split(".")) if module else _ROOT
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _digest_of_file(path: Path) -> bytes:
    return hashlib.sha256(path.relative_to(_ROOT).as_posix().encode() + b"\0" + _content(path)).digest()


_CHECKSUM_BYTES: Final = 32
MOST_BYTES: Final = 2**26  # largest size of a file; the largest kernel has less than a megabyte
_HAS_OWNERS: Final = hasattr(os, "geteuid")
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
# neither follows links nor waits for pipes
_FLAGS: Final = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_RUNTIME: Final = {"numba.core.runtime._nrt_python": "NRT_", "numba._helperlib": "numba_"}
"""Numba's C modules whose functions kernels call, and the prefix of their names in machine code."""


class MachineCode(NamedTuple):
    """A compiled kernel."""

    entry: str  # symbol of the function that Python calls
    environment: str  # symbol of the pointer to its environment
    needs: tuple[str, ...]  # symbols that must be provided by others
    constants: bytes  # Python objects of its environment, pickled
    code: bytes  # object file


def find(kernel: str, types: str) -> Callable[..., Any] | None:
    for path in _paths(kernel, types):
        code = _read(path, _stamp(kernel))
        if code is not None:
            with contextlib.suppress(AttributeError, TypeError):  # a Numba version with other internals
                return _load(kernel, code)
    return None


def is_there(kernel: str, types: str) -> bool:
    for path in _paths(kernel, types):
        with contextlib.suppress(OSError), open_trusted(path):
            return True
    return False


def keep(kernel: str, types: str, code: MachineCode) -> None:
    """Write a kernel into the first writable folder; if there is none, the next process compiles it again."""
    content = pickle.dumps((_stamp(kernel), tuple(code)))
    for path in _paths(kernel, types):
        with contextlib.suppress(OSError):
            _replace(path, hashlib.sha256(content).digest() + content)
            return


def writable_folder() -> Path | None:
    for folder in _folders():
        with contextlib.suppress(OSError):
            make_folder(folder, mend=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _paths(kernel: str, types: str) -> Iterator[Path]:
    """Yield the possible files of a kernel: in NUMBA_CACHE_DIR if set, else in the package and the user's cache."""
    name = f"{kernel.removeprefix('spinsim.')}-{_digest(kernel, types, _machine())[:16]}.kernel"
    for folder in _folders():
        yield folder / name


@cache
def _folders() -> list[Path]:
    own = _digest(str(_ROOT))[:16]
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        shared = Path(chosen, f"spinsim-{own}")  # of root or of its first user; any other user has a separate folder
        return [shared, *([shared.with_name(f"{shared.name}-{os.geteuid()}")] if hasattr(os, "geteuid") else [])]
    folders = [_ROOT / "__pycache__" / "kernels"]
    with contextlib.suppress(RuntimeError):  # a user without a home
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folders.append(Path(caches, "spinsim", own))
    return folders


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogateescape")).hexdigest()


@cache
def _machine() -> str:
    """Processor, interpreter and Numba settings; each combination has its own files."""
    llvm = _llvm()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know the features of this processor
        features = ""
    elsewhere = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_")]
    settings = sorted(setting for setting in settings if not setting.startswith(elsewhere))
    interpreter = str(sys.implementation.cache_tag), getattr(sys, "abiflags", "")
    return "\n".join([llvm.get_process_triple(), llvm.get_host_cpu_name(), features, *interpreter, *settings])


def _stamp(kernel: str) -> str:
    """Identity of the sources of a kernel's machine code; a file with another stamp is out of date."""
    return " ".join([source_digest(kernel.rpartition(".")[0]), *_versions()])


@cache
def _versions() -> tuple[str, ...]:
    from importlib.metadata import version  # loads modules for e-mail

    return version("numba"), version("llvmlite")


def _read(path: Path, stamp: str) -> MachineCode | None:
    try:
        with open_trusted(path) as file:
            content = file.read(MOST_BYTES)
    except OSError:
        return None
    checksum, content = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if hashlib.sha256(content).digest() != checksum:
        return None
    try:
        written, fields = pickle.loads(content)  # noqa: S301  (of the user, root or the package's owner)
        return MachineCode(*fields) if written == stamp else None
    except (TypeError, ValueError):  # a file of another version
        return None


def _replace(path: Path, content: bytes) -> None:
    """Write a temporary file in the same folder, then rename it: readers never see a partial file."""
    make_folder(path.parent, mend=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            if hasattr(os, "fchmod"):
                os.fchmod(handle, 0o644)  # other users may have the kernels of the package
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _load(kernel: str, code: MachineCode) -> Callable[..., Any] | None:
    """Load machine code as a Python function; None if it needs something that is missing."""
    llvm, make = _llvm(), _runtime("numba._dynfunc")
    _name_runtime()
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    if not _are_there(code.needs):
        importlib.import_module("numba")  # loads Intel's vector library, if it is installed
        if not _are_there(code.needs):
            return None  # LLVM would end the process
    try:
        constants = pickle.loads(code.constants)  # noqa: S301
    except (ImportError, AttributeError):  # a type of a module that no longer exists
        return None
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.code))
    engine.finalize_object()
    environment = make.Environment({})
    environment.consts.extend(constants)
    ctypes.c_void_p.from_address(engine.get_global_value_address(code.environment)).value = id(environment)
    address, module = engine.get_function_address(code.entry), sys.modules[__name__]
    kept_alive = engine, environment  # as long as the function
    function: Callable[..., Any] = make.make_function(module, kernel, "", address, environment, kept_alive)
    return function


def _are_there(symbols: tuple[str, ...]) -> bool:
    return all(_llvm().address_of_symbol(symbol) for symbol in symbols)


def has_loaded() -> bool:
    return _llvm.cache_info().currsize > 0


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _name_runtime() -> None:
    """Tell LLVM the addresses of the functions in Numba's C modules."""
    for name, prefix in _RUNTIME.items():
        for helper, address in _runtime(name).c_helpers.items():
            _llvm().add_symbol(helper if helper.startswith("_") else prefix + helper, address)


def _runtime(name: str) -> ModuleType:
    if "numba" in sys.modules or name in sys.modules:
        return importlib.import_module(name)
    numba = find_spec("numba")
    folder = Path(((numba and numba.submodule_search_locations) or [""])[0], *name.split(".")[1:-1])
    spec_of_file = PathFinder.find_spec(name.rpartition(".")[2], [str(folder)])
    spec = spec_from_file_location(name, spec_of_file.origin) if spec_of_file and spec_of_file.origin else None
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # a version that needs more of Numba
        return importlib.import_module(name)
    sys.modules[name] = module
    return module


@contextlib.contextmanager
def open_trusted(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file of reasonable size that only trusted users can have written, in a folder of the same kind.

    Raises:
        OSError: if there is no such file.
    """
    with _folder(path.parent) as folder:
        handle = os.open(path, _FLAGS) if folder is None else os.open(path.name, _FLAGS, dir_fd=folder)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise PermissionError(errno.EPERM, "no file of a size that is read", str(path))
        _check(path, status)
        with open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def make_folder(folder: Path, mend: bool = False) -> None:
    """Create a folder, if it is missing, in which only its owner can write.

    Args:
        folder: Path of the folder; parents are created too.
        mend: True removes others' write permission from the user's own folder, as earlier versions created some. Its
            files must be checked one by one afterwards, since others may have put them there.

    Raises:
        OSError: if it cannot be created, and if others own it or can write in it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o755)
    with _folder(folder, mend):
        pass


@contextlib.contextmanager
def _folder(folder: Path, mend: bool = False) -> Iterator[int | None]:
    if not _HAS_OWNERS:
        yield None
        return
    handle = os.open(folder, _FLAGS | os.O_DIRECTORY)
    try:
        status = os.fstat(handle)
        if mend and status.st_uid == os.geteuid() and status.st_mode & _OTHERS_WRITE:
            os.fchmod(handle, stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)
            status = os.fstat(handle)
        _check(folder, status)
        yield handle
    finally:
        os.close(handle)


def _check(path: Path, status: os.stat_result) -> None:
    """Refuse files and folders that others own or can write to; the owner of the package may own files in it."""
    if not _HAS_OWNERS:
        return
    owners = {0, os.geteuid()}
    if path.is_relative_to(_ROOT):
        owners.add(_ROOT.stat().st_uid)
    if status.st_uid not in owners or status.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, "others can have written it", str(path))
