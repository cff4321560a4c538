"""Kafka's jars from Maven, in a cache folder: fetched once per state of a pom."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
MAVEN_TIMEOUT_S = 900


def broker_jars() -> list[Path]:
    """Return the jars of Kafka's broker and tools."""
    return _fetch("broker")


def connector_jars() -> list[Path]:
    """Return the jars that Spark needs to speak with Kafka."""
    return _fetch("connector")


def _fetch(name: str) -> list[Path]:
    """Return the jars that `<name>.pom.xml` names.

    Raises:
        RuntimeError: there is no Maven, or it failed; the text ends with what it printed.
    """
    pom = HERE / f"{name}.pom.xml"
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("ROCKETPY_BENCH_CACHE", "~/.cache/rocketpy/bench")).expanduser()
    jars = cache / f"kafka-{name}-{digest}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.exists():
            unfinished = jars.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            _copy_dependencies(pom, unfinished)
            unfinished.rename(jars)
    return sorted(jars.glob("*.jar"))


def _copy_dependencies(pom: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError(
            "Kafka's jars come by Maven, and there is no `mvn` on the PATH: install it "
            "(Debian, Ubuntu: apt install maven; macOS: brew install maven)"
        )
    command = [
        *(maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"),
        *(f"-DoutputDirectory={folder}", "-DincludeScope=runtime"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        printed = (done.stdout + done.stderr)[-4000:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{printed}")
