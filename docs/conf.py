"""Sphinx configuration of the site: ``python -m sphinx -W docs build/site`` builds it, without the network."""

import ast
import os
import re
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

from spinsim import __version__
from spinsim.cli import app as program
from spinsim.observables.table import TABLE

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "spinsim"
author = "The spinsim developers"
project_copyright = author
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

# Notebooks run in the build. What ran before is kept beside the site, so that a second build takes seconds.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
os.environ["MATPLOTLIBRC"] = str(HERE / "_static" / "matplotlibrc")

# Docstrings are in Google's style; types stand in the signatures.
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "spinsim"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
mathjax_path = "mathjax/startup.js"
mathjax3_config = {"loader": {"load": ["input/tex", "output/chtml", "a11y/assistive-mml"]}}
copybutton_exclude = ".linenos, .gp, .go"


def command_line() -> str:
    """Every command of the program with its help, as Markdown."""
    parts = []
    top = typer.main.get_command(program)
    commands: list[tuple[tuple[str, ...], Any]] = [((), top)]
    while commands:
        path, command = commands.pop(0)
        context = context_of(command, " ".join(("spinsim", *path)))
        if path:
            heading = f"{'#' * (1 + len(path))} `{context.info_name}`"
            parts.append(f"{heading}\n\n```text\n{command.get_help(context)}\n```\n")
        below = getattr(command, "commands", {})
        commands = [((*path, name), each) for name, each in below.items()] + commands
    return "\n".join(parts)


def context_of(command: Any, name: str) -> Any:
    """The context in which a command prints its help, 96 columns wide."""
    return command.context_class(command, info_name=name, terminal_width=96, max_content_width=96)


def gallery() -> str:
    """Every example with its picture, what it teaches and its source, as Markdown."""
    parts = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        words = ast.get_docstring(ast.parse(path.read_text())) or ""
        title, *paragraphs = words.split("\n\n")
        prose = [text.replace("``", "`") for text in paragraphs if not text.startswith("    ")]
        commands = next((text for text in paragraphs if text.startswith("    ")), "")
        heading = title.rstrip(".")
        picture = f"images/{path.stem}.png"
        picture = picture if (HERE / picture).exists() else f"images/gallery/{path.stem}.png"
        parts += [f"## {heading[0].upper()}{heading[1:]}", f"![{heading}]({picture})", *prose]
        parts += [f"```text\n{re.sub('^    ', '', commands, flags=re.MULTILINE)}\n```"]
        source = f"```{{literalinclude}} ../examples/{path.name}\n:language: python\n```"
        parts += [f":::{{dropdown}} `examples/{path.name}`\n{source}\n:::"]
    return "\n\n".join(parts)


def averages() -> str:
    """Every observable with its formula, as a table in Markdown."""
    head = ("column", "printed as", "average", "of the moments", "unit", "runs")
    rows: list[tuple[str, ...]] = [head, ("---",) * len(head)]
    for one in TABLE:
        names = f"`{one.name}`", f"`{one.label}`", one.formula.replace("<", r"\<").replace("*", r"\*")
        rows.append((*names, ", ".join(f"`{moment}`" for moment in one.moments), one.units, ", ".join(one.needs)))
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


GENERATED = {"reference/averages": averages, "reference/commands": command_line, "gallery": gallery}


TYPES = {
    r"~numpy\._typing\._array_like\._Buffer.*?_NestedSequence\[complex \| bytes \| str\]": "ArrayLike",
    r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[(.*?)\]\]": r"NDArray[\1]",
}
"""What NumPy's names of types expand to, and the names."""


def append_generated(app: Sphinx, page: str, source: list[str]) -> None:
    """Append to a page what the program itself says."""
    if page in GENERATED:
        source[0] += "\n" + GENERATED[page]() + "\n"


def plain_types(
    app: Sphinx, kind: str, name: str, item: object, options: object, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Write types of arrays as the source does, not as NumPy expands them."""

    def plain(text: str | None) -> str | None:
        for long, short in TYPES.items():
            text = re.sub(long, short, text) if text else text
        return text

    return plain(arguments), plain(returned)


def escape_docstring(app: Sphinx, kind: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Let |J| be no substitution of reStructuredText, nor what stands before a colon the type of a property."""
    if kind == "property" and lines:
        lines[0] = lines[0].replace(": ", " \N{EN DASH} ")
    parts = [re.split("(``.*?``)", line) for line in lines]
    lines[:] = ["".join(p if k % 2 else p.replace("|", r"\|") for k, p in enumerate(line)) for line in parts]


def setup(app: Sphinx) -> None:
    """Connect the pages that are partly generated, and docstrings."""
    app.connect("source-read", append_generated)
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)
    app.connect("autodoc-process-signature", plain_types)
