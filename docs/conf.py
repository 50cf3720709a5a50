"""Sphinx configuration of the site: ``python -m sphinx -W docs build/site`` builds it, without the network."""

import ast
import os
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
import typer
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.application import Sphinx

from spinsim import __version__
from spinsim.cli import app as program
from spinsim.observables.table import TABLE

HERE = Path(__file__).parent
ROOT = HERE.parent
REPOSITORY = os.environ.get("SPINSIM_REPOSITORY", "")
"""Owner and name at GitHub, such as ``someone/spinsim``: links to Binder, sources and issues appear with it."""

DOI = os.environ.get("SPINSIM_DOI", "")
"""Identifier of the archived release, such as ``10.5281/zenodo.1234567``."""

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
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
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


def badges() -> str:
    """Version, licence and Python as small labels; with a repository its tests, with a DOI its link."""
    facts = {"version": release, "licence": "MIT", "Python": "3.11 or newer"}
    labels = [f'<span class="label"><b>{name}</b>{value}</span>' for name, value in facts.items()]
    if REPOSITORY:
        address = f"https://github.com/{REPOSITORY}/actions/workflows/ci.yml"
        labels.append(f'<a href="{address}"><img alt="tests" src="{address}/badge.svg"></a>')
    doi = f'<a href="https://doi.org/{DOI}">{DOI}</a>' if DOI else "with the first release"
    labels.append(f'<span class="label"><b>DOI</b>{doi}</span>')
    return " ".join(labels)


myst_substitutions = {"badges": badges()}


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
        width = "100%" if path.stem == "front_page" else "30em"  # a figure is one column of a paper wide
        picture = f"```{{image}} images/{path.stem}.png\n:alt: {heading}\n:width: {width}\n```"
        parts += [f"## {heading[0].upper()}{heading[1:]}", picture, *prose]
        parts += [f"```text\n{re.sub('^    ', '', commands, flags=re.MULTILINE)}\n```"]
        source = f"```{{literalinclude}} ../examples/{path.name}\n:language: python\n```"
        parts += [f":::{{dropdown}} `examples/{path.name}`\n{source}\n:::"]
    return "\n\n".join(parts)


def averages() -> str:
    """Every observable with its formula, as a table in Markdown."""
    head = ("column", "printed as", "average", "of the moments", "unit", "runs")
    rows: list[tuple[str, ...]] = [head, ("---",) * len(head)]
    for one in TABLE:
        names = f"`{one.name}`", f"`{one.label}`", typeset(one.formula)
        moments = ", ".join(f"`{moment}`" for moment in one.moments)
        rows.append((*names, moments, typeset_numbers(one.units), ", ".join(one.needs)))
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


WORD = re.compile(r"a|\|?(?!Gamma)[A-Za-z][a-z-]+\|?,?")
LETTERS = {
    r"\|([^|]*)\|": r"\\lvert \1 \\rvert",
    "<": r"\\langle ",
    ">": r" \\rangle",
    "sigma_x": r"\\sigma^x",
    "k_time": r"K_\\tau",
    "m_s": r"m_\\mathrm{s}",
    r"\b(Gamma|cosh|sinh)\b": r"\\\1",
}
"""Plain letters of formulas, as regular expressions, and their TeX."""
NUMBERS = {
    r"(\d+ - )?\b(\d+)\^(-?\d+)( - \d+)?(,?)": r"$\1\2^{\3}\4\5$",
    r"\bk_B( = 1)?": r"$k_\\mathrm{B}\1$",
    r"\\\|J\\\| / T": r"$\\lvert J \\rvert / T$",
    r"\b1 / T\b": "$1 / T$",
    r"(?<=\d) x ": " \N{MULTIPLICATION SIGN} ",
}
"""Formulas among the words of settings and units, likewise."""


def typeset(formula: str) -> str:
    """Return a formula of words and plain letters, such as "specific heat <E^2> / N", with MathJax for the letters."""

    def symbols(run: str) -> str:
        if not re.search(r"\w", run):  # an operator between words
            return run
        operator, letters, comma = re.fullmatch("([-/] )?(.*?)(,?)", run).groups(default="")
        for plain, tex in LETTERS.items():
            letters = re.sub(plain, tex, letters)
        return f"{operator}${letters}${comma}"

    parts = []
    for is_word, tokens in groupby(formula.split(" "), lambda token: WORD.fullmatch(token) is not None):
        run = " ".join(tokens)
        parts += [run] if is_word else map(symbols, re.split("(?<=[,=]) ", run))  # where a line may end
    return " ".join(parts)


def typeset_numbers(text: str) -> str:
    """Return a text in Markdown with powers and constants outside its backticks in MathJax."""
    parts = text.split("`")
    for plain, tex in NUMBERS.items():
        parts[::2] = [re.sub(plain, tex, part) for part in parts[::2]]
    return "`".join(parts)


GENERATED = {"reference/averages": averages, "reference/commands": command_line, "gallery": gallery}


TYPES = {
    r"~numpy\._typing\._array_like\._Buffer.*?_NestedSequence\[complex \| bytes \| str\]": "ArrayLike",
    r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[(.*?)\]\]": r"NDArray[\1]",
}
"""What NumPy's names of types expand to, and the names."""


INSTALLED_WITH = {"dimod": "dimod", "networkx": "networkx", "sklearn": "scikit-learn"}
"""Packages that tutorials import and spinsim does not bring, and what installs them."""


def notebook(text: str) -> Any:
    """A tutorial as a Jupyter notebook, whose first cell installs what is missing if its line is uncommented."""
    made = read_myst_markdown_notebook(text)
    code = "\n".join(cell.source for cell in made.cells if cell.cell_type == "code")
    more = [
        name
        for package, name in INSTALLED_WITH.items()
        if re.search(rf"^(import|from) {package}\b", code, re.MULTILINE)
    ]
    for cell in made.cells:
        if cell.cell_type == "markdown":  # other pages are not beside a notebook
            cell.source = re.sub(r"\[([^\]]+)\]\([^)]*\.md[^)]*\)", r"\1", cell.source)
    made.cells.insert(1, nbformat.v4.new_code_cell(f"# %pip install {' '.join(['spinsim-ising', *more])}"))
    made.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"
    return made


def tutorials() -> list[Path]:
    """Pages that are notebooks and can be downloaded."""
    return [path for path in sorted((HERE / "tutorials").glob("*.md")) if path.stem != "index"]


def append_generated(app: Sphinx, page: str, source: list[str]) -> None:
    """Append to a page what the program itself says; put the link to its notebook below the title of a tutorial."""
    if page in GENERATED:
        source[0] += "\n" + GENERATED[page]() + "\n"
    if page == "reference/settings":
        source[0] = typeset_numbers(source[0])
    folder, _, name = page.rpartition("/")
    if folder == "tutorials" and name != "index":
        links = f'<a href="{name}.ipynb" download>Download this page as a notebook</a>'
        if REPOSITORY:
            address = f"https://mybinder.org/v2/gh/{REPOSITORY}/HEAD?labpath=docs/tutorials/{name}.md"
            links += f' or <a href="{address}">run it in Binder</a>'
        line = f"```{{raw}} html\n<p>{links}.</p>\n```"
        source[0] = re.sub(r"^(# .+\n)", rf"\1\n{line}\n", source[0], count=1, flags=re.MULTILINE)


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the tutorials as notebooks beside their pages."""
    if exception is None and app.builder.format == "html":
        for path in tutorials():
            nbformat.write(notebook(path.read_text()), Path(app.outdir) / "tutorials" / f"{path.stem}.ipynb")


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
    app.connect("build-finished", write_notebooks)
    app.connect("autodoc-process-docstring", escape_docstring, priority=400)
    app.connect("autodoc-process-signature", plain_types)
