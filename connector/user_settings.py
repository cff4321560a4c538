"""What a user has set for Spark outside of the program: those settings come first.

Spark itself reads these when its JVM starts, which is too late for a decision before that. They
are read as `spark-submit` does: its arguments win over the file, the file over the environment.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

_LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*")  # of Java's properties


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Whether `spark-submit` runs this program: then the JVM is there, with all its settings."""
    return "PYSPARK_GATEWAY_PORT" in environ


def user_settings(environ: Mapping[str, str], spark_home: str) -> dict[str, str]:
    """Return the settings of `spark-defaults.conf`, `PYSPARK_SUBMIT_ARGS` and `MASTER`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master")
    parser.add_argument("--properties-file", type=Path)
    parser.add_argument("--conf", "-c", action="append", default=[])
    arguments, _ = parser.parse_known_args(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "")))
    folder = Path(environ.get("SPARK_CONF_DIR") or Path(spark_home) / "conf")
    settings = {"spark.master": environ["MASTER"]} if environ.get("MASTER") else {}
    settings |= _from_file(arguments.properties_file or folder / "spark-defaults.conf")
    settings |= _pairs(arguments.conf)
    if arguments.master:
        settings["spark.master"] = arguments.master
    return settings


def _from_file(path: Path) -> dict[str, str]:
    try:
        return _pairs(path.read_text().splitlines())
    except OSError:
        return {}


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    found = (_LINE.fullmatch(line) for line in lines)
    return {pair[1]: pair[2] for pair in found if pair is not None}
