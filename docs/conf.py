"""Sphinx configuration of the documentation site; `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.docscrape import NumpyDocString

from tabnsm import __version__

DOCS = Path(__file__).resolve().parent
REPOSITORY = "https://github.com/tabnsm/tabnsm"

project = "tabnsm"
author = "The TabNSM developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
default_role = "literal"
smartquotes = False  # docstrings quote the values of options

# Documented elsewhere, and the build needs no network.
nitpick_ignore = [
    ("py:class", name)
    for name in (
        "abc.ABC",
        "sklearn.base.BaseEstimator",
        "sklearn.base.RegressorMixin",
        "tabnsm.fitting.TrainableRegressor",  # its members are listed with the estimator's
        "torch.nn.modules.module.Module",
    )
]

autodoc_inherit_docstrings = False
autodoc_typehints = "none"  # the numpydoc sections state the types
autosummary_generate = True
numpydoc_show_class_members = False  # the autosummary template lists them
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_title = f"tabnsm {release}"
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def link_to_repository(app: Any, docname: str, source: list[str]) -> None:
    """Lead links to files that are no pages of the site, such as tests, to the repository."""
    folder = (DOCS / docname).parent

    def target(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        if not path.is_file() or app.env.path2doc(path) in app.env.found_docs:
            return match[0]
        if path.suffix in (".png", ".svg"):
            return match[0]
        relative = path.relative_to(DOCS.parent).as_posix()
        return f"]({REPOSITORY}/blob/main/{relative}{match[2] or ''})"

    source[0] = LINK.sub(target, source[0])


def shape_to_notes(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Show the section Shape of a docstring, which numpydoc does not have, under Notes."""
    for number in range(len(lines) - 1):
        if lines[number : number + 2] == ["Shape", "-----"]:
            lines[number : number + 3] = ["Notes", "-----", f"Shape: {lines[number + 2]}"]


def write_formula(translator: Any, node: nodes.Node) -> None:
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    is_block = isinstance(node, nodes.math_block)
    translator.body.append(tex2mathml(node.astext(), as_block=is_block))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect the changes to pages and docstrings."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    NumpyDocString.sections["Shape"] = ""  # known, so that reading it does not warn
    app.connect("source-read", link_to_repository)
    app.connect("autodoc-process-docstring", shape_to_notes, priority=400)  # before numpydoc
