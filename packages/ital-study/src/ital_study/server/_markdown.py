"""A study's texts as Markdown: headings, lists, bold, italics and links, nothing else.

Pages get a tree of plain data and build elements from it. So no text is ever read as HTML, neither
here nor in the browser, and the strict content policy needs no exception.
"""

import functools
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

Node = str | dict[str, Any]
"""A text, or an element: its tag, its children, a link's address or a heading's level."""

_RULES = ("paragraph", "heading", "list", "text", "newline", "escape", "emphasis", "link")


class _Reader(MarkdownIt):
    """Reads Markdown; links lead to web pages and mail addresses only."""

    def validateLink(self, url: str) -> bool:
        """Return whether a text may become a link to an address."""
        # javascript: would run in the study's own page, relative addresses would lead to actions of
        # the study.
        return url.startswith(("https://", "mailto:"))


_READER = _Reader("zero", {"html": False})
_READER.enable([*_RULES, "balance_pairs", "fragments_join"])


@functools.lru_cache(maxsize=256)
def parse_markdown(text: str) -> list[Node]:
    """Parse a text.

    Args:
        text: Markdown; a text without marks is paragraphs.

    Returns:
        Elements of the tags p, heading, ul, ol, li, strong, em and a. The headings that the author
        uses have the levels 1, 2, … without gaps, whatever they are in the text: the page knows
        what they stand below.
    """
    tokens = _READER.parse(text)
    headings = [token for token in tokens if token.type == "heading_open"]
    used = sorted({heading.tag for heading in headings})
    levels = {tag: level for level, tag in enumerate(used, start=1)}
    return _tree(tokens, levels)


def _tree(tokens: Sequence[Token], levels: dict[str, int]) -> list[Node]:
    """Nest a flat list of opening and closing tokens."""
    # The children of every element that is open, the innermost last.
    stack: list[list[Node]] = [[]]
    for token in tokens:
        if token.type == "inline":
            stack[-1] += _tree(token.children or (), levels)
        elif token.nesting == 1 and token.hidden:
            # The paragraphs of a tight list are hidden: their children are those of the item. It
            # is pushed again, because the hidden paragraph is closed as well.
            stack.append(stack[-1])
        elif token.nesting == 1:
            children: list[Node] = []
            stack[-1].append(_element(token, children, levels))
            stack.append(children)
        elif token.nesting == -1:
            stack.pop()
        elif token.type.endswith("break"):
            stack[-1].append(" ")
        else:
            stack[-1].append(token.content)
    return stack[0]


def _element(token: Token, children: list[Node], levels: dict[str, int]) -> Node:
    element: dict[str, Any] = {"tag": token.tag}
    if token.type == "heading_open":
        element = {"tag": "heading", "level": levels[token.tag]}
    if token.type == "link_open":
        element["href"] = token.attrGet("href")
    element["children"] = children
    return element
