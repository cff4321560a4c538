"""The wheel: whole, and all that is needed where the checkout is not.

A build backend that does not follow our symlinks drops whole packages without a word.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests import quick_spark
from tests.project.packaging import PACKAGES, ROOT, build, copy_source, make_environment

import rocketpy

pytestmark = pytest.mark.slow

SUFFIXES = (".py", ".html", ".css", ".js", ".svg")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_source(tmp_path_factory.mktemp("source"))


def files_of(source: Path) -> set[str]:
    """Name each file as the wheel should: `rocketpy/broker_core/errors.py`."""
    src = source / "src"
    expected = {path.relative_to(src).as_posix() for path in src.rglob("*.py")}
    for package in PACKAGES:
        files = [each for each in (source / package).rglob("*") if each.suffix in SUFFIXES]
        expected |= {f"rocketpy/{path.relative_to(source).as_posix()}" for path in files}
    return expected


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if Path(name).suffix in SUFFIXES}


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_module_and_what_pages_are_made_of(source: Path, wheel: Path) -> None:
    assert files_in(wheel) == files_of(source)


def test_the_wheel_made_from_the_sdist_holds_every_module(source: Path, tmp_path: Path) -> None:
    sdist = build("sdist", source, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = build("wheel", unpacked, tmp_path / "wheel")
    assert files_in(wheel) == files_of(source)


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it, and nothing of the checkout."""
    return make_environment(wheel, tmp_path_factory.mktemp("environment"))


def run(*command: object, folder: Path) -> str:
    """Run a program outside of the checkout, in the environment of a user who has just come."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    ended = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**kept, "LANG": "C.UTF-8", "SPARK_SUBMIT_OPTS": quick_spark.QUICK},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_command_of_the_wheel_finds_itself_whole(bin_folder: Path, tmp_path: Path) -> None:
    shown = run(bin_folder / "rocketpy", "--version", folder=tmp_path)
    assert shown == f"rocketpy {rocketpy.__version__}\n"
    if importlib.util.find_spec("pyspark"):
        line = f"PATH={bin_folder}:$PATH rocketpy doctor --json"  # as `activate` does it
        findings = {
            each["check"]: each for each in json.loads(run("bash", "-c", line, folder=tmp_path))
        }
        assert findings["discovery"]["what"] == "Spark finds the format (pyspark_rocketpy)"
        assert findings["worker"]["verdict"] == "ok"


# Twice in one process: a second Spark takes as long to start as the first, and shows no more.
_TWICE = """
import runpy, sys
for _ in range(2):
    runpy.run_path("readme.py", run_name="__main__")
homes = {module.__file__ for name, module in sys.modules.items() if name.startswith("rocketpy")}
print(*sorted({str(home).partition("/rocketpy/")[0] for home in homes}))
"""


@pytest.mark.spark
@pytest.mark.further
@pytest.mark.timeout(600)
def test_the_readmes_program_runs_from_the_wheel_and_runs_again(
    bin_folder: Path, tmp_path: Path
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "readme.py").write_text(blocks[0])
    (tmp_path / "twice.py").write_text(_TWICE)
    *shown, home = run(bin_folder / "python", "twice.py", folder=tmp_path).splitlines()
    for orders, bills in zip((1000, 2000), shown, strict=True):
        found = re.fullmatch(rf"{orders} bills; billing has read up to (\{{.*\}})", bills)
        assert found, shown
        assert sum(ast.literal_eval(found[1]).values()) == orders
    assert Path(home).is_relative_to(bin_folder.parent)
