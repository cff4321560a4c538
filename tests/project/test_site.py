"""The docs as a site: built without a warning, and read without the network."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.project.markdown_page import ROOT

OUTSIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^\s\">]+")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None:
        assert not os.environ.get("CI"), "the extra 'docs' is not installed"
        pytest.skip("the extra 'docs' is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_on_the_site_and_asks_nothing_of_others(site: Path) -> None:
    built = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written <= built
    for page in site.rglob("*.html"):
        assert OUTSIDE.findall(page.read_text("utf-8")) == [], page


@pytest.mark.slow
def test_no_style_of_the_site_loads_anything_from_elsewhere(site: Path) -> None:
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//", style.read_text("utf-8")) == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "bench/README.md"])
def test_what_pages_outside_of_the_site_link_to_is_there(page: str) -> None:
    source = ROOT / page
    for target in LINK.findall(source.read_text("utf-8")):
        assert (source.parent / target).exists(), f"{page}: {target}"
