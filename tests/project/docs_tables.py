"""Tables of the docs, as lists of cells, for tests that hold them to the code."""

from __future__ import annotations

import re
from pathlib import Path

from tests.project.markdown_page import DOCS


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return the tables of a page, by the heading above each; of two, the first."""
    found: dict[str, list[list[str]]] = {}
    heading, rows = "", list[list[str]]()
    for line in [*(DOCS / page).read_text("utf-8").splitlines(), ""]:
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("|"):
            rows.append(_cells(line))
        elif rows:
            found.setdefault(heading, rows[2:])
            rows = []
    return found


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def names_in(cell: str) -> list[str]:
    """Return what stands in back ticks."""
    return re.findall(r"`([^`]+)`", cell)


def source_files(root: Path) -> list[Path]:
    """Return the modules of the packages."""
    packages = ("broker_core", "connector", "console", "spark_jobs")
    return [path for package in packages for path in sorted((root / package).rglob("*.py"))]
