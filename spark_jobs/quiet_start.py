"""A Spark that starts and stops without a page of lines; they are shown when something fails.

Spark writes to the standard error of the process that starts it: where JARs were looked for, which
host name it took. To someone who looks at a terminal, none of it says anything while all is well.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from types import TracebackType

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from rich.console import Console

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.session import start_spark
from rocketpy.spark_jobs.job_cluster import JobCluster
from rocketpy.spark_jobs.store_folder import require_store

_STDERR = 2


class SparkStartError(RocketPyError):
    """Is raised when Spark does not start; what it said is on stderr then."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"Spark does not start: {self.reason}; 'rocketpy doctor' looks for the cause"


class SparkLog:
    """What Spark, its JVM and its workers write to standard error: a file without a name.

    Use it in `with`; Spark goes on writing to the file when it is closed here.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="rocketpy-spark-")  # noqa: SIM115

    def __enter__(self) -> SparkLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def start(self, cores: int | str, **how: bool) -> SparkSession:
        """Start a Spark on this machine, or return the one that runs; a terminal sees it turn.

        Raises:
            SparkStartError: it does not start; all that it said was shown.
        """
        try:
            return self._started(cores, how)
        except Exception as cause:
            self.show()
            first_line = str(cause).strip().partition("\n")[0].rstrip(".")
            raise SparkStartError(first_line or type(cause).__name__) from cause

    def _started(self, cores: int | str, how: Mapping[str, bool]) -> SparkSession:
        with (
            os.fdopen(os.dup(_STDERR), "w") as terminal,  # of its own: the other is turned away
            Console(file=terminal).status("starting Spark"),
            self._taking_stderr(),
        ):
            return start_spark(cores, {}, **how)

    @contextmanager
    def _taking_stderr(self) -> Iterator[None]:
        sys.stderr.flush()
        before = os.dup(_STDERR)
        os.dup2(self._file.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(before, _STDERR)
            os.close(before)

    def show(self) -> None:
        """Bring what was said to stderr."""
        said = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)
        sys.stderr.write(said.decode("utf-8", "replace"))


def stop_quietly(spark: SparkSession) -> None:
    """Stop a Spark, or what a signal has left of it.

    pyspark reads updates of accumulators until it knows that the JVM is gone. If it finds that out
    by itself a moment before, it prints a traceback.
    """
    with suppress(Py4JError, OSError), redirect_stderr(io.StringIO()):
        spark.stop()


@contextmanager
def job_spark(
    place: Path | JobCluster, cores: int | str = "*", **how: bool
) -> Iterator[SparkSession]:
    """Give a command on a store or a cluster its Spark, see quiet_spark().

    Raises:
        StoreNotFoundError: there is no store; Spark was not started.
        OptionError, UnreachableError: the cluster cannot be asked; Spark was not started.
    """
    if isinstance(place, Path):
        require_store(place)
    else:
        place.topics()
    with quiet_spark(cores, **how) as spark:
        yield spark


@contextmanager
def quiet_spark(cores: int | str = "*", **how: bool) -> Iterator[SparkSession]:
    """Give a command its Spark; what that says is shown if it fails unforeseen.

    One that ran before, as in a notebook, goes on. `how` is for start_spark().

    Raises:
        SparkStartError: Spark does not start.
    """
    is_there = SparkSession.getActiveSession() is not None
    with SparkLog() as log:
        spark = log.start(cores, **how)
        try:
            yield spark
        except RocketPyError:  # says all there is to say
            raise
        except Exception:
            log.show()
            raise
        finally:
            if not is_there:
                stop_quietly(spark)
