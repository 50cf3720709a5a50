"""Machine code is out of date when anything is changed that it was made from, and only then."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import spinsim
from spinsim.machine import stored
from spinsim.machine.compiled import Compiled

ROOT = Path(spinsim.__file__).parent
DECORATED = re.compile(r"^@(compiled\.)?(kernel|real_kernel|part|body|inlined|intrinsic)$", re.M)
KERNELS = sorted(path for path in ROOT.rglob("*.py") if DECORATED.search(path.read_text()))


def name_of(path: Path) -> str:
    return ".".join(["spinsim", *path.relative_to(ROOT).with_suffix("").parts])


def constants_from(path: Path) -> set[Path]:
    """Files of the package whose constants a file imports: modules, and names that are written in capitals."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spinsim":
            home = ROOT.joinpath(*node.module.split(".")[1:])
            found |= {home / f"{alias.name}.py" for alias in node.names}
            if any(alias.name.isupper() for alias in node.names):
                found.add(home.with_suffix(".py"))
    return {module for module in found if module.is_file()}


def names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from names_in(inner)


def used_by(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Functions of the package that a compiled function names, and that Numba would compile with it."""
    for name in names_in(function.__code__):
        value = function.__globals__.get(name)
        value = value._function if isinstance(value, Compiled) else value
        if isinstance(value, types.FunctionType) and value.__module__.startswith("spinsim."):
            yield value


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernels_are_stamped_with_all_they_may_inline(path: Path) -> None:
    """Constants are found by the imports as Python reads them; functions by what each compiled function names."""
    stamped = stored.sources(name_of(path))
    assert {path, ROOT / "machine/compiler.py", ROOT / "machine/intrinsics.py"} <= stamped
    for part in stamped & set(KERNELS):
        assert constants_from(part) <= stamped
    module = importlib.import_module(name_of(path))
    left = [item._function for item in vars(module).values() if isinstance(item, Compiled) and item._way != "intrinsic"]
    seen = set()
    while left:
        function = left.pop()
        if function not in seen:
            seen.add(function)
            left += used_by(function)
    assert {Path(function.__code__.co_filename) for function in seen if function.__module__ == module.__name__} <= {
        path
    }
    own = [function for function in seen if function.__module__ == module.__name__]
    assert {Path(used.__code__.co_filename) for function in own for used in used_by(function)} <= stamped


def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str | None) -> dict[str, str]:
    """Digests of all kernels' modules in a copy of the package, in which one file has another line."""
    root = tmp_path / str(changed).replace("/", "-") / "spinsim"
    shutil.copytree(ROOT, root, ignore=lambda folder, names: {"__pycache__", "kernels"} & set(names))
    if changed is not None:
        with open(root / changed, "a") as file:
            file.write("# changed\n")
        (root / "rng").mkdir()  # a folder that an earlier version left in a working tree
    monkeypatch.setattr(stored, "_ROOT", root)
    for cached in (stored.source_digest, stored.sources, stored._imported, stored._content, stored._digest_of_file):
        cached.cache_clear()
    return {name_of(path): stored.source_digest(name_of(path)) for path in KERNELS}


def test_a_changed_part_is_seen_by_its_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        before = copied(tmp_path, monkeypatch, None)
        for changed in ("rng.py", "acceptance.py", "machine/compiler.py", "errors.py"):
            after = copied(tmp_path, monkeypatch, changed)
            differing = {name for name in before if before[name] != after[name]}
            users = {
                name_of(path)
                for path in KERNELS
                if tmp_path / changed.replace("/", "-") / "spinsim" / changed in stored.sources(name_of(path))
            }
            assert differing == users
            assert bool(users) == (changed != "errors.py")
            assert (len(users) == len(KERNELS)) == (changed == "machine/compiler.py")
    finally:
        monkeypatch.undo()
        for cached in (stored.source_digest, stored.sources, stored._imported, stored._content, stored._digest_of_file):
            cached.cache_clear()
