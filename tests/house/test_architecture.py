"""Imports go one way: from the top of this list to its bottom."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

from places import ROOT as CHECKOUT

import spinsim

ROOT = Path(spinsim.__file__).parent
LAYERS = [
    ["cli", "__main__"],
    ["benchmark"],
    ["jobs"],
    ["run"],
    ["pooling"],
    ["settings"],
    ["analysis"],
    ["saved"],
    ["result"],
    ["solution", "dimod", "simulation"],
    ["optimum", "sampling", "transfer_matrix"],
    ["store"],
    ["observables"],
    ["gemm"],
    ["engine"],
    ["model", "cuda"],
    ["inputs"],
    ["rng", "packing", "acceptance"],
    ["parallel"],
    ["machine"],
    ["record"],
    ["errors", "registry"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


@cache
def parsed(path: Path) -> ast.Module:
    """The statements of a file, which several tests look through."""
    return ast.parse(path.read_text())


def imported_parts(path: Path) -> set[str]:
    """First names below ``spinsim`` that a file imports."""
    parts = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "spinsim":
            below = node.module.split(".")[1:]
            parts |= {below[0]} if below else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            parts |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("spinsim.")}
    return parts & set(RANK)


def test_imports_go_one_way() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part == "__init__":
            continue  # lazy names only
        wrong += [f"{path.relative_to(ROOT)} imports {p}" for p in imported_parts(path) if RANK[p] < RANK[part]]
    assert not wrong


def test_gpus_become_current_in_one_way() -> None:
    """CuPy's own ``with Device(0)`` leaves a thread that has begun with GPU 0 without a context."""
    own = re.compile(r"^\s*with .*\bDevice\(", re.MULTILINE)
    assert not [path for path in ROOT.rglob("*.py") if own.search(path.read_text())]


def module_of(path: Path) -> str:
    """The name of a file's module."""
    return ".".join(("spinsim", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(path: Path, modules: set[str]) -> set[str]:
    """Modules of the package that a file imports, at its head, within functions or for types alone."""
    found: set[str] = set()
    rest: list[ast.AST] = [parsed(path)]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= whole & modules or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules
        rest += ast.iter_child_nodes(node)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others of its group."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        rest = [start]
        while rest:
            new = graph[rest.pop()] - seen
            seen |= new
            rest += new
        reached[start] = seen
    groups = {frozenset(other for other in seen if module in reached[other]) for module, seen in reached.items()}
    return sorted(sorted(group) for group in groups if group)


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = {module_of(path): path for path in ROOT.rglob("*.py")}
    graph = {module: imported_modules(path, set(files)) - {module} for module, path in files.items()}
    graph["spinsim"] = set()  # lazy names, and the list of jobs
    assert circles(graph) == []


def test_every_module_has_a_layer() -> None:
    names = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert names - {"__init__", "__pycache__", "py.typed"} == set(RANK)


def lines_of(node: ast.stmt) -> int:
    """Lines of a statement; of a function without its signature and its docstring."""
    first = node.lineno
    if isinstance(node, ast.FunctionDef):
        first = node.body[ast.get_docstring(node) is not None and len(node.body) > 1].lineno
    return (node.end_lineno or first) - first + 1


def test_files_classes_and_functions_stay_small() -> None:
    most = {ast.FunctionDef: 60, ast.ClassDef: 250}
    large = []
    for path in ROOT.rglob("*.py"):
        text, name = path.read_text(), path.relative_to(ROOT)
        large += [f"{name} has {text.count(chr(10))} lines"] if text.count("\n") > 600 else []
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and lines_of(node) > most[type(node)]:
                large.append(f"{node.name} of {name} has {lines_of(node)} lines")
    assert not large


def test_every_folder_is_packaged() -> None:
    """The wheel's package list is written by hand; tests that import the checkout would not miss one."""
    checkout = CHECKOUT
    listed = tomllib.loads((checkout / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {".".join(p.parent.relative_to(checkout).parts) for p in (checkout / "spinsim").rglob("__init__.py")}
    assert set(listed) == folders | {"spinsim.kernels"}


def test_the_list_of_jobs_imports_nothing() -> None:
    """Every import of the package enters the jobs, which must cost nothing."""
    code = "import sys, spinsim; print(sorted(name for name in sys.modules if name.startswith('spinsim.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['spinsim.jobs', 'spinsim.registry']"


def test_only_jobs_know_jobs() -> None:
    """Who needs what depends on a job asks its record, and never for the job's name or its type."""
    jobs = "anneal|temper|transfer"
    asked = re.compile(rf"isinstance\(.*({jobs.title()})|[\"']({jobs})[\"']", re.I)
    found = []
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("jobs/", "benchmark/", "cli/bench")) and name != "__init__.py":
            found += [f"{name}: {line.strip()}" for line in path.read_text().splitlines() if asked.search(line)]
    assert not found


def test_all_that_users_import_is_documented() -> None:
    """Inside the package a name and its types may say all; what users import has docstrings, methods too."""
    public = {name: getattr(spinsim, name) for name in spinsim.__all__}
    methods = {
        f"{name}.{member}": value
        for name, class_ in public.items()
        if isinstance(class_, type) and class_.__module__.startswith("spinsim.")
        for member, value in vars(class_).items()
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }
    described = [name for name, value in (public | methods).items() if callable(value) or isinstance(value, property)]
    assert not [name for name in described if not inspect.getdoc((public | methods)[name])]


def test_help_does_not_import_what_is_slow() -> None:
    slow = ("numba", "numpy", "scipy", "h5py", "matplotlib")
    code = f"import sys, spinsim.cli; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
