"""The checks of the doctor on what Spark needs: Java, the workers' Python, discovery, Delta.

Each looks in the same way as Spark does, as far as it can. None of them starts a Spark.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rocketpy.broker_core.doctor.findings import Finding

_JAVA_VERSIONS = (17, 21, 25)
_NEEDED = ("pyspark", "pyarrow", "numpy", "mmh3", "rocketpy")
_TIMEOUT_S = 60
_LOOK = (
    "import importlib.util, json, sys; print(json.dumps({'version': sys.version_info[:2], "
    f"'missing': [n for n in {_NEEDED!r} if importlib.util.find_spec(n) is None]}}))"
)
_FIND = "import importlib.util as u, sys; sys.exit(u.find_spec('pyspark_rocketpy') is None)"


def check_environment() -> Iterator[Finding]:
    """Yield a finding for each thing that can be wrong around Spark."""
    yield _spark()
    yield _java()
    yield _worker_python()
    yield from _driver_python()
    yield from _discovery()
    yield _delta()


def _spark() -> Finding:
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        remedy = 'pip install "rocketpy-spark[spark]"'
        return Finding("pyspark", "fault", "it is not installed", remedy)
    if not version.startswith("4.2."):
        remedy = 'pip install "pyspark>=4.2,<4.3"'
        return Finding("pyspark", "fault", f"it is {version}; sources need 4.2", remedy)
    return Finding("pyspark", "ok", version)


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else "java"
    said = _run([command, "-version"])
    if said is None:
        what = f"{command} cannot be run" + (" (JAVA_HOME)" if home else "")
        remedy = (
            "install Java 17 or 21 (Debian: apt install openjdk-17-jre-headless), set JAVA_HOME"
        )
        return Finding("java", "fault", what, remedy)
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    version = int(found[1]) if found else 0
    if version < min(_JAVA_VERSIONS):
        what = f"{command} is version {version or 'unknown'}; Spark 4.2 needs 17 or later"
        return Finding("java", "fault", what, "install Java 17 or 21 and set JAVA_HOME to it")
    return Finding("java", "ok", f"{version}, {command}")


def _worker_python() -> Finding:
    name = os.environ.get("PYSPARK_PYTHON") or "python3"
    origin = "PYSPARK_PYTHON" if os.environ.get("PYSPARK_PYTHON") else "the first on the path"
    remedy = f"export PYSPARK_PYTHON={sys.executable}"
    said = _run([name, "-c", _LOOK])
    try:
        look = json.loads(said or "")
    except ValueError:
        what = f"workers run {name} ({origin}), which is no Python that can be run"
        return Finding("worker", "fault", what, remedy)
    version, missing = tuple(look["version"]), look["missing"]
    if version != sys.version_info[:2]:
        theirs, ours = ".".join(map(str, version)), ".".join(map(str, sys.version_info[:2]))
        what = f"workers run {name} ({origin}), Python {theirs}; the driver is {ours}"
        return Finding("worker", "fault", what, remedy)
    if missing:
        what = f"workers run {name} ({origin}), which lacks {', '.join(missing)}"
        return Finding("worker", "fault", what, f"{remedy}, or install them there")
    return Finding("worker", "ok", f"{name} ({origin}), with all that it needs")


def _driver_python() -> Iterator[Finding]:
    """Spark looks for formats with PYSPARK_DRIVER_PYTHON, which may be set to start a notebook."""
    name = os.environ.get("PYSPARK_DRIVER_PYTHON")
    if name and _run([name, "-c", "print(1)"]) != "1\n":
        what = f"PYSPARK_DRIVER_PYTHON is {name}, which runs no programs: no format will be found"
        yield Finding("driver", "fault", what, "unset PYSPARK_DRIVER_PYTHON, or name a Python")


def _discovery() -> Iterator[Finding]:
    """Spark imports all modules named pyspark_*; one that fails hides the formats of all."""
    finder = _finding_python()
    if _run([finder, "-c", _FIND]) is None:
        what = f"Spark looks for formats with {finder}, which has no pyspark_rocketpy"
        remedy = f"export PYSPARK_PYTHON={sys.executable}, or activate its environment"
        yield Finding("discovery", "fault", what, remedy)
        return
    names = sorted(
        module.name for module in pkgutil.iter_modules() if module.name.startswith("pyspark_")
    )
    remedy = "call rocketpy.register(spark) once in each session"
    if "pyspark_rocketpy" not in names:
        what = "pyspark_rocketpy is not on the path: Spark does not find the format"
        yield Finding("discovery", "fault", what, f"pip install rocketpy-spark; or {remedy}")
        return
    for name in names:
        if _run([sys.executable, "-c", f"import {name}"]) is None:
            what = f"{name} cannot be imported, which hides all formats of Python"
            yield Finding("discovery", "fault", what, f"mend or remove it, or {remedy}")
            return
    yield Finding("discovery", "ok", f"Spark finds the format ({', '.join(names)})")


def _finding_python() -> str:
    chosen = os.environ.get("PYSPARK_DRIVER_PYTHON") or os.environ.get("PYSPARK_PYTHON")
    return chosen or "python3"


def _delta() -> Finding:
    if importlib.util.find_spec("delta") is None:
        remedy = 'for Delta tables: pip install "rocketpy-spark[delta]"'
        return Finding("delta", "ok", "delta-spark is not installed", remedy)
    version = importlib.metadata.version("delta-spark")
    if has_delta_jars():
        return Finding("delta", "ok", f"{version}, its JARs are here")
    what = f"{version}, its JARs are not here yet: the first session fetches them"
    return Finding("delta", "warning", what, "rocketpy doctor --spark tries it")


def has_delta_jars() -> bool:
    """Whether the JARs of the installed delta-spark are where Spark leaves what it fetched."""
    jar = f"*delta-spark_*-{importlib.metadata.version('delta-spark')}.jar"
    return any(list(home.glob(f"jars/{jar}")) for home in Path.home().glob(".ivy2*"))


def _run(command: list[str]) -> str | None:
    """Return what a program prints; None if it fails or is not there."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr
