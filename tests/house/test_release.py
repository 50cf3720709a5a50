"""Files by which the program is built, published and installed elsewhere agree with pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import pytest
from places import ROOT

import spinsim as ss

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob(".github/**/*.yml"), ROOT / ".readthedocs.yaml"]), ids=lambda path: path.name
)
def test_settings_of_services_are_yaml(path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_recipe_of_conda_has_the_requirements_of_the_project() -> None:
    text = (ROOT / "conda/meta.yaml").read_text()
    assert f'version = "{ss.__version__}"' in text
    run = text.split("  run:\n")[1].split("\n\n")[0].replace("matplotlib-base", "matplotlib")
    wanted = {line.replace("- ", "").replace(" ", "") for line in run.split("\n    ") if line}
    assert {line.strip() for line in wanted} == {f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]}


@pytest.mark.parametrize("path", sorted((ROOT / "containers").iterdir()), ids=lambda path: path.name)
def test_containers_install_extras_that_there_are(path) -> None:
    text = path.read_text()
    (extras,) = re.findall(r"/source\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "spinsim warm-up --device cpu --quiet" in text


def test_a_release_is_tagged_with_its_version() -> None:
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    assert release[True]["push"]["tags"] == ["v*"]  # YAML reads the key "on" as true
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}


def test_the_citation_has_the_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == ss.__version__
