"""Apache RocketMQ from Maven Central, and Java sources of ours compiled against it, in a cache.

The folder is `ROCKETPY_MAVEN_CACHE` or `~/.cache/rocketpy/apache-rocketmq-5.5.0`; that of the 4.x
line lies beside it. Jars are fetched once (a stamp named after the pom's hash says that all are
there), sources are compiled once per state. A file lock keeps two test runs from filling a folder
together.

The class path of 5.5.0 has the jars first, so that JVMs can take their classes from an archive:
see class_archive.py.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.interop import class_archive

HERE = Path(__file__).parent
JAVA = HERE / "java"
HEADER_TOOL = HERE / "HeaderTool.java"  # knows no version
VERSION = "5.5.0"
VERSION_4 = "4.9.7"
COMMANDS = ("mvn", "java", "javac")
MAVEN_TIMEOUT_S = 900
COMPILE_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the jars and the compiled tools lie."""

    jars: Path
    tool: Path
    first: Path | None = None  # the jar that goes before all

    @property
    def class_path(self) -> str:
        """The class path: our settings of logs go before those inside the jars."""
        if self.first is None:
            return os.pathsep.join([str(HERE), str(self.tool), f"{self.jars}/*"])
        jars = map(str, sorted(self.jars.glob("*.jar")))
        return os.pathsep.join([str(self.first), *jars, str(self.tool)])

    def with_classes(self, classes: Path) -> Installation:
        """Return the same jars with the classes of another folder."""
        return replace(self, tool=classes)


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
        jars = _fetch_jars(cache, HERE / "pom.xml")
        tools = _compile(cache, _sources(HERE), name="tools")
        first = _jar_of_settings(cache)
        installation = Installation(jars=jars, tool=tools, first=first)
        class_archive.make(installation.class_path)
        return installation


@functools.cache
def install_4() -> Installation:
    """Fetch clients, tools and integration tests of 4.9.7, and compile what runs the tests.

    Raises:
        RuntimeError: Maven or the compiler failed; the text ends with what they printed.
    """
    cache = _cache_folder_4()
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / ".lock"):
        jars = _fetch_jars(cache, HERE / "pom-4.9.7.xml")
        suite = _compile(cache, [*_sources(JAVA / "suite"), HEADER_TOOL], name="suite")
        return Installation(jars=jars, tool=suite)


@functools.cache
def wire_driver_classes(version: str) -> Installation:
    """Return the driver of Java clients, compiled against the client of `version`.

    Raises:
        RuntimeError: Maven or the compiler failed; the text ends with what they printed.
    """
    own = JAVA / ("wire_4" if version == VERSION_4 else "wire_5")
    return compiled(_sources(JAVA / "wire") + _sources(own), name="wire", version=version)


def compiled(sources: Sequence[Path], *, name: str, version: str = VERSION) -> Installation:
    """Return Java sources, compiled; `name` is that of their folder in the cache.

    Raises:
        RuntimeError: Maven or the compiler failed; the text ends with what they printed.
    """
    is_4 = version == VERSION_4
    installation = install_4() if is_4 else install()
    cache = _cache_folder_4() if is_4 else _cache_folder()
    with _locked(cache / ".lock"):
        return installation.with_classes(_compile(cache, sources, name=name))


def _cache_folder_4() -> Path:
    return _cache_folder().with_name(f"apache-rocketmq-{VERSION_4}")


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


def _fetch_jars(cache: Path, pom: Path) -> Path:
    jars = cache / "lib"
    stamp = cache / f"jars-{_digest([pom])}.complete"
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


def _jar_of_settings(cache: Path) -> Path:
    """Return a jar with our settings of logs: with a folder there could be no archive."""
    settings = HERE / "rmq.logback.xml"
    jar = cache / f"settings-{_digest([settings, HERE / 'pom.xml'])}.jar"
    if not jar.exists():
        with zipfile.ZipFile(jar.with_suffix(".new"), "w") as unfinished:
            unfinished.write(settings, settings.name)
        jar.with_suffix(".new").rename(jar)
    return jar


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.java"))


def _compile(cache: Path, sources: Sequence[Path], *, name: str) -> Path:
    classes = cache / f"{name}-{_digest(sources)}"
    if not classes.exists():
        unfinished = cache / f"{name}-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _run(
            [
                *("javac", "-nowarn", "-cp", f"{cache / 'lib'}/*", "-d", str(unfinished)),
                *(str(source) for source in sources),
            ],
            timeout_s=COMPILE_TIMEOUT_S,
        )
        unfinished.rename(classes)
    return classes


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def _run(command: Sequence[str], *, timeout_s: float) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        printed = (done.stdout + done.stderr)[-4000:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{printed}")
