"""Every line of the README and of the docs runs, in its order, as a reader would type it; what they link to exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import forking
import pytest
from harness import forking_server
from places import ROOT

PAGES = [
    "README.md",
    "runs/README.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
]
WRITTEN = [*PAGES, "ARCHITECTURE.md", "CONTRIBUTING.md"]
INSTALLING = "python -m pip"
SHORTER = {
    "README.md": {
        "--sweeps 20000": "--sweeps 4000",
        "samples=64": "samples=8",
        "time_limit=10": "time_limit=0.1",
    },
    "docs/howto/analysis.md": {"--sweeps 20000 --clusters sw": "--sweeps 2000 --clusters sw", "--size 32": "--size 12"},
    "docs/howto/campaigns.md": {
        "10_000": "100",
        "= 40_000": "= 400",
        "160_000": "800",
        "256": "8",
        "64 ": "4 ",
        "[4, 6]": "[3, 4]",
        "128": "4",
        "32": "4",
    },
    "docs/howto/density.md": {
        "--sweeps 20000 --wang-landau 20000": "--sweeps 1000 --wang-landau 1000",
        "60:24g --sweeps 20000": "60:24g --sweeps 1000",
        "sweeps=5000, wang_landau=5000": "sweeps=500, wang_landau=500",
    },
    "docs/howto/solving.md": {"--time-limit 2": "--time-limit 0.2", "--time-limit 1 ": "--time-limit 0.1 "},
    "docs/theory/annealing.md": {
        "--populations 16 --replicas 32768": "--populations 4 --replicas 2048",
        "replicas=4096, steps=100": "replicas=1024, steps=50",
    },
    "docs/theory/clusters.md": {
        "ss.square(64)": "ss.square(16)",
        "--size 64": "--size 16 --sweeps 1000",
        "--size 16 --moves": "--size 6 --moves",
    },
    "docs/theory/quantum.md": {
        "--samples 8 --k 0.25:0.31:8": "--samples 4 --k 0.25:0.31:4",
        "10 --k 0.25:0.29:3 --slices 64 --replicas 21": "2 --k 0.25:0.29:2 --slices 32 --sweeps 1000 --replicas 6",
        "--beta 4 --slices": "--beta 4 --sweeps 2000 --slices",
        "--beta 0.5:4:8g --slices": "--beta 0.5:4:8g --sweeps 1000 --slices",
        "--slices 32 --out L4": "--sweeps 2000 --slices 32 --out L4",
        "--slices 48 --out L6": "--sweeps 2000 --slices 32 --out L6",
        "8 --couplings pm-j --k 0.25:0.29:3 --slices 64": "4 --couplings pm-j --k 0.25:0.29:3 --sweeps 500 --slices 32",
    },
    "docs/validation/spin_glass.md": {
        "--samples 600": "--samples 4",
        "5000": "60",
        "10000": "240",
        "--measure-every 100 ": "--measure-every 10 ",
    },
    "runs/README.md": {"L$L.toml": "L$L.toml --samples 2 --thermalize 50 --sweeps 200 --measure-every 10"},
}
"""What makes runs of an evening short enough for a test: the lines stay the same but for these numbers."""


def blocks(page: str) -> list[tuple[str, str]]:
    """Language, empty for the shell, and text of every fenced block of a page but cells, which run in the build."""
    text = (ROOT / page).read_text()
    for long, short in SHORTER.get(page, {}).items():
        assert long in text
        text = text.replace(long, short)
    fences = re.findall(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    return [(language, inner) for language, inner in fences if not language.startswith(("{", "text"))]


def command() -> list[str]:
    """``spinsim`` as words of a shell: a copy of a process that has imported everything, where there are such."""
    if sys.platform != "linux":
        return [sys.executable, "-m", "spinsim"]
    return [sys.executable, "-S", forking.__file__, "run", forking_server()]


def in_shell(lines: str, folder: Path) -> None:
    """Run a block by bash, with this environment's ``spinsim``; the lines that install are CI's own."""
    kept = "\n".join(line for line in lines.splitlines() if not line.startswith(INSTALLING))
    shims = folder / "bin"
    if not shims.exists():
        shims.mkdir()
        (shims / "spinsim").write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
        (shims / "spinsim").chmod(0o755)
    path = os.pathsep.join([str(shims), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", kept], cwd=folder, env=os.environ | {"PATH": path},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{kept}\n{done.stdout}\n{done.stderr}"


@pytest.mark.system
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(ROOT / "runs", tmp_path / "runs", ignore=shutil.ignore_patterns("*.h5"))
    names: dict[str, Any] = {}
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page, "exec"), names)  # noqa: S102  (the project's own page)
        elif language == "toml":
            Path("run.toml").write_text(text)
        else:
            assert language == "", f"{page} has a block of {language}, which no test runs"
            in_shell(text, tmp_path)


@pytest.mark.parametrize("page", WRITTEN)
def test_links_and_files_that_a_page_names_exist(page: str) -> None:
    """Files may be named from their last folders on, such as ``gemm/naive.cu``."""
    text = (ROOT / page).read_text()
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    missing = [link for link in links if link and not (ROOT / page).parent.joinpath(link).exists()]
    named = set(re.findall(r"[\w./]*/[\w]+\.(?:cuh?|py)\b", text))
    folders = [ROOT / name for name in ("spinsim", "kernels", "tests", "examples", "benchmarks", "scripts")]
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*.*")]
    missing += [name for name in sorted(named) if not any(file.endswith(f"/{name.lstrip('./')}") for file in files)]
    assert not missing


def test_the_readme_is_a_front_page() -> None:
    assert len((ROOT / "README.md").read_text().split()) < 600
