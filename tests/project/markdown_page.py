"""A page of the docs as a program: its fenced blocks in order, and what they start from.

Runs: ```python, and ```bash, ```sh, ```console. Shown only: text, json, sql, ini, and the like. Two
comments of HTML, which readers do not see, say more:

    <!-- not run: why -->                                above a block that cannot be run
    <!-- starts from: quick-start.md#a-store -->         blocks of other pages that go before

A block with a title, ```python title="test_shop.py", is a file: it is written, and a shell block
below is to use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

PYTHON = ("python",)
SHELL = ("bash", "sh", "console")
SHOWN = ("text", "json", "sql", "ini", "java", "scala", "yaml", "toml")

_NOT_RUN = re.compile(r"<!--\s*not run:\s*(\S.*?)\s*-->", re.DOTALL)
_STARTS_FROM = re.compile(r"<!--\s*starts from:\s*(\S.*?)\s*-->", re.DOTALL)
_TITLE = re.compile(r'\btitle="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; the line is that of its first line of text."""

    page: str
    line: int
    language: str
    text: str
    section: str  # the heading above it, as links name it
    title: str | None = None
    not_run: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Whether it is a program, and not marked as one that cannot be run."""
        return self.language in PYTHON + SHELL and self.not_run is None


def pages() -> list[Path]:
    """Return every page whose blocks are to be run."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    """Name a page as it is found in the project."""
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def slug(heading: str) -> str:
    """Return what a link calls a heading, here, on the site and on code hosts."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def tokens_of(page: Path) -> list[Token]:
    """Parse a page."""
    return MarkdownIt().enable("table").parse(page.read_text("utf-8"))


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    tokens, found, section = tokens_of(page), list[Block](), ""
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            section = slug(tokens[number + 1].content)
        if token.type != "fence":
            continue
        above = tokens[number - 1].content if tokens[number - 1].type == "html_block" else ""
        language, _, more = token.info.strip().partition(" ")
        title, not_run = _TITLE.search(more), _NOT_RUN.search(above)
        found.append(
            Block(
                page=name_of(page),
                line=(token.map or [0])[0] + 2,
                language=language,
                text=token.content,
                section=section,
                title=title[1] if title else None,
                not_run=not_run[1] if not_run else None,
            )
        )
    return found


def indented_code(page: Path) -> list[int]:
    """Return the lines of code that is not fenced, which nobody would run."""
    return [(token.map or [0])[0] + 1 for token in tokens_of(page) if token.type == "code_block"]


def program_of(page: Path) -> Sequence[Block]:
    """Return all blocks that make a page run, those that it starts from first.

    Of these without consoles: they show what there is, and do so on their own page.
    """
    return [*_before(page), *(block for block in blocks_of(page) if block.is_run)]


def _before(page: Path) -> Iterator[Block]:
    for told in _STARTS_FROM.findall(page.read_text("utf-8")):
        for target in told.split():
            file, _, section = target.partition("#")
            found = [each for each in blocks_of(page.parent / file) if each.section == section]
            assert any(each.is_run for each in found), f"{name_of(page)}: {target} has no block"
            yield from (each for each in found if each.is_run and each.language != "console")
