"""Reports: blocks of plain data, and writers that turn them into a page."""

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
    terms,
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
    "terms",
]
