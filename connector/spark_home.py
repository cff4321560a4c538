"""A home of Spark whose Python processes start with a second of CPU less.

Spark has its Python processes import PySpark from `python/lib/pyspark.zip` of its home. That file
has no compiled modules: each process compiles some hundred of them anew, be it a worker or the
planner of a stream. In a home without that file they import the PySpark that is installed.

S1  It is for a PySpark that pip installed for the very Python that runs the workers. A `SPARK_HOME`
    of the user's, and executors on other machines, are left alone.
S2  It is a folder of links in the cache of the user, who alone can write there.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

_LINKED = ("bin", "conf", "data", "examples", "jars", "licenses", "sbin")
_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_PYTHON_SETTINGS = ("spark.pyspark.python", "spark.pyspark.driver.python")


@contextmanager
def quick_home(settings: Mapping[str, str]) -> Iterator[None]:
    """Have a JVM that is started meanwhile take this home, if that is sure to change nothing else.

    `settings` are those of the session, and what the user has set elsewhere.
    """
    cache = None if _is_elsewhere(settings) else _cache()
    home = None if cache is None else home_without_zip(cache)
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _is_elsewhere(settings: Mapping[str, str]) -> bool:
    """Whether the user chose a Spark, or processes may run another Python than this one."""
    master = settings.get("spark.master", "")
    if "SPARK_HOME" in os.environ or not re.fullmatch(r"local(\[.*\])?", master):
        return True
    if any(name in settings for name in _PYTHON_SETTINGS):
        return True
    chosen = {os.environ[name] for name in _PYTHONS if name in os.environ}
    return any(shutil.which(name) != sys.executable for name in chosen)


def _cache() -> Path | None:
    """Return where caches of this user are; None for a user without a home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rocketpy"
    except RuntimeError:
        return None


def home_without_zip(cache: Path) -> Path | None:
    """Return a home of the installed Spark without its Python; None if there can be none.

    Raises nothing: whoever cannot write to the cache starts Spark as ever.
    """
    installed = Path(pyspark.__file__).parent
    if not (installed / "bin" / "spark-submit").exists() or not _is_found(installed.parent):
        return None
    name = f"spark-{pyspark.__version__}-{zlib.crc32(os.fsencode(installed)):08x}"
    home = cache / name
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in _LINKED:
            _link(home / each, installed / each)
    except OSError:
        return None
    return home if home.stat().st_uid == os.getuid() else None


def _is_found(folder: Path) -> bool:
    """Whether each process of this Python looks for packages there."""
    return folder in map(Path, [*site.getsitepackages(), site.getusersitepackages()])


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    if not target.exists():
        link.unlink(missing_ok=True)
        return
    link.unlink(missing_ok=True)
    with suppress(FileExistsError):  # another process was first
        link.symlink_to(target)
