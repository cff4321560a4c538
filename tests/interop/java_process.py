"""One JVM that the tests started: its options, its output file, its end.

Only the process started here is ever signalled, by its handle.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

BOOT_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.05
LOG_TAIL_CHARACTERS = 4000

# Short lives on few cores: the first compiler tier and the serial collector are up soonest.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
OPENED_PACKAGES = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
)


def archive_of(class_path: str) -> Path:
    """Return where an archive of classes lies, if one was made: beside the first jar."""
    return Path(class_path.partition(os.pathsep)[0]).with_suffix(".jsa")


def java_command(
    main_class: str, *arguments: str, class_path: str, home: Path, options: Sequence[str] = ()
) -> list[str]:
    """Return the command line of a small JVM that keeps its files inside `home`.

    `options` are more words for the JVM; they come after ours and win over them.
    """
    archive = archive_of(class_path)
    classes = [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"] if archive.exists() else []
    return [
        *("java", "-Xms128m", "-Xmx512m", *QUICK_START, *OPENED_PACKAGES, *classes),
        *(f"-Duser.home={home}", "-Djava.net.preferIPv4Stack=true", "-Dfile.encoding=UTF-8"),
        "-Dtls.server.mode=disabled",  # else each server makes itself a key: seconds
        *options,
        *("-cp", class_path, main_class, *arguments),
    ]


class JavaProcess:
    """A JVM in the background that writes both of its output streams into one file."""

    def __init__(self, command: Sequence[str], *, home: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=home,
                env={**os.environ, "ROCKETMQ_HOME": str(home)},
                start_new_session=True,  # Ctrl-C is for pytest; it then stops us in order
            )

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._process.pid

    def wait_for(self, text: str) -> None:
        """Return when the output holds `text`.

        Raises:
            RuntimeError: the JVM ended or the time was up before that; shows the log's tail.
        """
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while text not in self.output():
            if self._process.poll() is not None:
                raise self._failure(f"ended with {self._process.returncode} before '{text}'")
            if time.monotonic() > deadline:
                raise self._failure(f"did not print '{text}' in {BOOT_TIMEOUT_S:.0f} s")
            time.sleep(POLL_INTERVAL_S)

    def stop(self) -> None:
        """End the JVM by SIGTERM and wait until its shutdown hooks are through.

        Raises:
            RuntimeError: it had ended by itself before, or had to be killed; shows the log's tail.
        """
        if self._process.poll() is not None:
            raise self._failure(f"had ended by itself with {self._process.returncode}")
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as still_running:
            self.kill()
            raise self._failure(
                f"was still running {STOP_TIMEOUT_S:.0f} s after SIGTERM"
            ) from still_running

    def kill(self) -> None:
        """End the JVM by SIGKILL; does nothing when it has ended already."""
        self._process.kill()
        self._process.wait()

    def output(self) -> str:
        """Return what the JVM has printed so far."""
        return self._log.read_text("utf-8", "replace")

    def _failure(self, what: str) -> RuntimeError:
        tail = self.output()[-LOG_TAIL_CHARACTERS:]
        return RuntimeError(f"JVM {self.pid} {what}; {self._log} ends:\n{tail}")
