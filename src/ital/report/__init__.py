"""One way to report: blocks of plain data, and the writers that make a page of them."""

from ital.report._blocks import (
    Block,
    PageSection,
    bullets,
    claims,
    commands,
    figure,
    figures_in,
    folded,
    heading,
    paragraph,
    picture,
    section,
    table,
)
from ital.report._html import html, page, style
from ital.report._pdf import pdf

__all__ = [
    "Block",
    "PageSection",
    "bullets",
    "claims",
    "commands",
    "figure",
    "figures_in",
    "folded",
    "heading",
    "html",
    "page",
    "paragraph",
    "pdf",
    "picture",
    "section",
    "style",
    "table",
]
