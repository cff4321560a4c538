"""Apache RocketMQ from Maven Central, and the Java tool compiled against it, in a cache folder.

The folder is `ROCKETPY_MAVEN_CACHE` or `~/.cache/rocketpy/apache-rocketmq-5.5.0`. Jars are fetched
once (a stamp named after pom.xml's hash says that all are there), the tool is compiled once per
state of its source. A file lock keeps two test runs from filling the folder together.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
VERSION = "5.5.0"
COMMANDS = ("mvn", "java", "javac")
MAVEN_TIMEOUT_S = 900
COMPILE_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the jars and the compiled tool lie."""

    jars: Path
    tool: Path

    @property
    def class_path(self) -> str:
        """The class path: our logging configuration goes before the ones inside the jars."""
        return os.pathsep.join([str(HERE), str(self.tool), f"{self.jars}/*"])


def missing_commands() -> list[str]:
    """Return the programs that these tests need and this machine has not."""
    return [command for command in COMMANDS if shutil.which(command) is None]


@functools.cache
def install() -> Installation:
    """Fetch and compile what the cache does not hold yet.

    Raises:
        RuntimeError: Maven or the compiler failed; the text ends with what they printed.
    """
    cache = _cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / ".lock"):
        return Installation(jars=_fetch_jars(cache), tool=_compile_tool(cache))


def _cache_folder() -> Path:
    configured = os.environ.get("ROCKETPY_MAVEN_CACHE")
    if configured:
        return Path(configured).expanduser()
    return Path.home() / ".cache" / "rocketpy" / f"apache-rocketmq-{VERSION}"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch_jars(cache: Path) -> Path:
    pom = HERE / "pom.xml"
    jars = cache / "lib"
    stamp = cache / f"jars-{_digest(pom)}.complete"
    if not stamp.exists():
        shutil.rmtree(jars, ignore_errors=True)
        _run(
            [
                *("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"),
                *(f"-DoutputDirectory={jars}", "-DincludeScope=runtime"),
            ],
            timeout_s=MAVEN_TIMEOUT_S,
        )
        stamp.touch()
    return jars


def _compile_tool(cache: Path) -> Path:
    source = HERE / "RocketMqTool.java"
    classes = cache / f"tool-{_digest(source)}"
    if not classes.exists():
        unfinished = cache / "tool-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _run(
            ["javac", "-nowarn", "-cp", f"{cache / 'lib'}/*", "-d", str(unfinished), str(source)],
            timeout_s=COMPILE_TIMEOUT_S,
        )
        unfinished.rename(classes)
    return classes


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _run(command: Sequence[str], *, timeout_s: float) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        printed = (done.stdout + done.stderr)[-4000:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{printed}")
