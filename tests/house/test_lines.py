"""CI runs the README's test line and the tests that this line leaves out; who develops runs the same."""

from __future__ import annotations

import re
import shlex
import tomllib

from places import ROOT

SYSTEM = "python -m pytest -m system"
TESTING = re.compile(
    r"^python -m pip install (?:--quiet )?'\.\[test\]' +&& (?P<tests>python -m pytest)\b", re.MULTILINE
)


def lines(path: str) -> list[str]:
    """The commands of a script."""
    return [line for line in (ROOT / path).read_text().splitlines() if line and not line.startswith("#")]


def test_ci_runs_the_line_of_the_readme_and_what_it_leaves_out() -> None:
    readme, ci = ((ROOT / name).read_text() for name in ("README.md", ".ci/run"))
    (of_readme,), (of_ci,) = (re.findall(TESTING, text) for text in (readme, ci))
    assert of_readme == of_ci
    tests = [line for line in lines(".ci/run") if "pytest" in line]
    assert tests == [f"python -m pip install --quiet '.[test]' && {of_readme}", SYSTEM]
    assert f"\n{SYSTEM} " in (ROOT / "CONTRIBUTING.md").read_text()


def test_who_develops_runs_what_ci_runs() -> None:
    commands = [line.partition(" && ")[2] or line for line in lines(".ci/run")]
    checked = [command for command in commands if re.match("python -m (ruff|mypy|pytest)", command)]
    assert [line.removesuffix(' "$@"') for line in lines("scripts/check") if line.startswith("python")] == checked
    assert "- run: .ci/run" in map(str.strip, lines(".github/workflows/ci.yml"))


def test_every_marker_is_left_out_of_the_first_line() -> None:
    """So that each has a line of its own; and only CI's may leave anything out."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    words = shlex.split(options["addopts"])
    markers = [text.partition(":")[0] for text in options["markers"]]
    assert words[words.index("-m") + 1] == " and ".join(f"not {name}" for name in markers)
