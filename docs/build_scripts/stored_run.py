"""Shows parts of a stored run in the documentation: figures are drawn, and claims listed, when the
pages are built.

A run is a ``report.json`` of ``ital reproduce``, kept in docs/runs/ by store_run.py. In a page,

    ```{stored-run} quick controls theory
    :figures:
    ```

shows two sections of docs/runs/quick.json, with ``:figures:`` only the figures in sight, with
``:figures: all`` those behind folds too. The report of the full run is written as a page of its
own, reports/full.html.
"""

import functools
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ital import report as reports
from ital_paper.report import page as _report

RUNS = Path(__file__).parents[1] / "runs"
load = functools.cache(_report.load_report)


class StoredRun(SphinxDirective):
    """Sections of a stored run, by their names."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"figures": directives.unchanged, "scale": directives.flag}

    def run(self) -> list[nodes.Node]:
        """The sections as HTML."""
        name, *wanted = self.arguments[0].split()
        file = RUNS / f"{name}.json"
        self.env.note_dependency(str(file))
        report = load(file)
        if "scale" in self.options:
            kind = "a quick run" if report["quick"] else "the full run"
            return [
                nodes.paragraph(
                    "",
                    f"These are the results of {kind}: {report['scale']}, ital "
                    f"{report['version']}.",
                )
            ]
        shown = []
        for section in (one for one in report["sections"] if one["id"] in wanted):
            blocks = section["blocks"]
            if "figures" in self.options:
                every = reports.figures_in(blocks)
                blocks = (
                    every
                    if self.options["figures"] == "all"
                    else [one for one in every if one in blocks]
                )
            shown.append(reports.html(blocks, f"{name}-{section['id']}"))
        missing = set(wanted) - {one["id"] for one in report["sections"]}
        if missing:
            raise self.error(f"the stored run {name!r} has no section {', '.join(sorted(missing))}")
        return [nodes.raw("", f'<div class="ital-report">{"".join(shown)}</div>', format="html")]


def write_report(app: Sphinx, failure: Exception | None) -> None:
    """The whole report of the full run, beside the pages."""
    if failure is None and app.builder.format == "html":
        folder = Path(app.outdir) / "reports"
        folder.mkdir(exist_ok=True)
        (folder / "full.html").write_text(_report.page(load(RUNS / "full.json")), "utf-8")


def add_style(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """The style of the blocks, only on pages that have some."""
    if doctree is not None and any(
        'class="ital-report"' in node.astext() for node in doctree.findall(nodes.raw)
    ):
        scheme = "".join(
            f'body[data-theme="{theme}"] .ital-report{{color-scheme:{scheme}}}'
            for theme, scheme in (("auto", "light dark"), ("light", "light"), ("dark", "dark"))
        )
        context["metatags"] = (
            context.get("metatags", "") + f"<style>{reports.style()}{scheme}</style>"
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Adds the directive, the style and the report."""
    app.add_directive("stored-run", StoredRun)
    app.connect("html-page-context", add_style)
    app.connect("build-finished", write_report)
    return {"parallel_read_safe": True}
