"""Settings of the documentation: ``sphinx-build -W --keep-going -b html docs docs/_build/html``."""

import logging
import os
import re
import sys
from pathlib import Path

import imagesize  # comes with Sphinx
from docutils import nodes
from latex2mathml.converter import convert

from ital import __version__

# For the extensions layers, registries, stored_run.
sys.path.append(str(Path(__file__).parent / "build_scripts"))

project = "ital"
author = "The ital developers"
project_copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "layers",
    "registries",
    "stored_run",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The pages of the tutorial are notebooks: they run when the documentation is built, and again only
# when they change.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "executed")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
# For !ital.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
logging.getLogger("traitlets").setLevel(logging.WARNING)

napoleon_use_ivar = (
    True  # fields without a link target of their own: many classes have an lr or a beta
)
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"ital {release}"


def escape_bars(app, what, name, obj, options, lines):
    """Docstrings write |β| and TV̂(·|ν) in plain text, where reStructuredText would see a
    substitution.
    """
    for i, line in enumerate(lines):
        parts = re.split(r"(``.+?``)", line)
        lines[i] = "".join(
            part if part.startswith("``") else part.replace("|", r"\|") for part in parts
        )


def plain_types(app, what, name, obj, options, signature, returns):
    """Types as a reader writes them: Array, PRNGKeyArray, and ``...`` for a default that is a
    function.
    """

    def plain(text):
        text = re.sub(r"~?\b(?:[A-Za-z_]\w*\.)+(\w+)(?=[\[\], )]|$)", r"\1", text)
        text = re.sub(r"<function \S*<lambda>>", "...", text).replace("mappingproxy({})", "{}")
        return text.replace(
            "Key[Array, ''] | UInt32[Array, '2'] | UInt32[Array, '4']", "PRNGKeyArray"
        )

    return signature and plain(signature), returns and plain(returns)


def inline_math(translator, node):
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def display_math(translator, node):
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def check_math(app, doctree, docname):
    """Formulas are read even where no page is written (``make docs-check``)."""
    for node in doctree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
        convert(node.astext())


def mark_wide(app, doctree, docname):
    """Figures of several panels get the class "wide": on a phone they scroll (pages.css), others
    fit.
    """
    for node in doctree.findall(nodes.image):
        width, height = imagesize.get(Path(app.srcdir, node["uri"]))
        if width > 1.8 * height:
            node["classes"].append("wide")


def setup(app):
    app.connect("doctree-resolved", check_math)
    app.connect("doctree-resolved", mark_wide)
    # Formulas become MathML when the pages are built: they need no script and no network.
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-signature", plain_types)
