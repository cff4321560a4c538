"""The rules of the source tree that no linter knows."""

from __future__ import annotations

import re
import statistics
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker_core", "connector", "console", "spark_jobs")
MAX_LINES = 400
MAX_MEDIAN_LINES = 200

# Names that say nothing: what fits nowhere shows that a noun is missing.
SHAPELESS_NAMES = {"base", "common", "helpers", "manager", "misc", "utils"}

STORE_PARTS = re.compile(r"\.parts\b")

# Where packages come from is the business of the machine's own settings, not of the project.
# (The patterns do not match themselves, so this file needs no exception.)
REGISTRY_HOSTS = re.compile(
    r"\b(?:pypi\.org|pythonhosted\.org|repo1?\.maven(?:\.apache)?\.org|repository\.apache\.org"
    r"|registry\.npmjs\.org|registry-1\.docker\.io|ghcr\.io|conda\.anaconda\.org)\b"
)
MACHINE_PATHS = re.compile(r"(?<![\w./~$}-])/(?:work|root|Users|home/[a-z]\w*)(?=/|[\s\"'`)]|$)")


@pytest.fixture(scope="module")
def project_files() -> list[Path]:
    """What is, or would be, in the repository; a link to a folder is no file of its own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"the list of files comes from git: {problem}")
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


@pytest.fixture(scope="module")
def python_files(project_files: list[Path]) -> list[Path]:
    return [path for path in project_files if path.suffix == ".py"]


def line_count(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


@pytest.mark.parametrize("folder", [*PACKAGES, "notebooks", "src", "tests"])
def test_the_top_level_folder_is_there(folder: str) -> None:
    assert (ROOT / folder).is_dir()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_is_a_link_to_the_folder_at_the_top(package: str) -> None:
    link = ROOT / "src" / "rocketpy" / package
    assert link.is_symlink(), "on Windows, clone with core.symlinks=true"
    assert link.resolve() == ROOT / package


def test_no_python_file_is_too_long(python_files: list[Path]) -> None:
    lengths = {str(path.relative_to(ROOT)): line_count(path) for path in python_files}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_the_median_python_file_is_short(python_files: list[Path]) -> None:
    assert statistics.median(map(line_count, python_files)) < MAX_MEDIAN_LINES


def test_only_storage_knows_the_parts_of_a_store(python_files: list[Path]) -> None:
    """All others go through the doors of storage/contents.py, so that the parts may change."""
    found = []
    for path in python_files:
        name = path.relative_to(ROOT)
        if name.parts[0] in PACKAGES and name.parts[:2] != ("broker_core", "storage"):
            lines = enumerate(path.read_text("utf-8").splitlines(), start=1)
            found += [f"{name}:{number}" for number, line in lines if STORE_PARTS.search(line)]
    assert found == [], "add a door to storage/contents.py, or use one that is there"


def test_no_two_classes_have_one_name(python_files: list[Path]) -> None:
    found: dict[str, list[str]] = {}
    for path in python_files:
        if path.relative_to(ROOT).parts[0] in PACKAGES:
            for name in re.findall(r"^class ([A-Z]\w*)", path.read_text("utf-8"), re.MULTILINE):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_module_has_a_shapeless_name(python_files: list[Path]) -> None:
    names = [path.relative_to(ROOT).with_suffix("") for path in python_files]
    shapeless = [
        str(name) for name in names if SHAPELESS_NAMES & {part.strip("_") for part in name.parts}
    ]
    assert shapeless == []


@pytest.mark.parametrize(
    "forbidden",
    [
        pytest.param(REGISTRY_HOSTS, id="registry host"),
        pytest.param(MACHINE_PATHS, id="path of one machine"),
    ],
)
def test_no_file_names_a(forbidden: re.Pattern[str], project_files: list[Path]) -> None:
    found = []
    for path in project_files:
        text = path.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if match := forbidden.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match.group()}")
    assert found == []


# Written with | for /, or this file would name them.
@pytest.mark.parametrize("line", ['Path("|root|store")', "cd |work", "in |home|ann|store"])
def test_a_path_of_one_machine_is_found(line: str) -> None:
    assert MACHINE_PATHS.search(line.replace("|", "/"))


@pytest.mark.parametrize("line", ["src/work/file", "store/root", "/workers/", "$HOME/work"])
def test_any_other_path_is_left_alone(line: str) -> None:
    assert not MACHINE_PATHS.search(line)
