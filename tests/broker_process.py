"""Our name server and our broker as processes of their own, which can be killed and started again.

`python -m tests.broker_process listenPort=0 storePathRootDir=… …` is the broker; it prints its
address, as `rocketpy namesrv --json` does, once it serves.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

PROJECT = Path(__file__).parents[1]
LOG_TAIL_CHARACTERS = 4000


class ServerProcess:
    """One server: started on entry, and stopped on exit if it still runs.

    Only the process started here is ever signalled, by its handle. `log` gets what it says, from
    one start after the other.
    """

    def __init__(self, command: Sequence[str], *, log: Path) -> None:
        self._command, self._log = command, log
        self._process: subprocess.Popen[str] | None = None
        self.address = ""  # known once it serves
        self.ready_s = 0.0  # how long the last start took

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    def start(self) -> None:
        """Start it, and return when it serves.

        Raises:
            RuntimeError: it did not come up; shows the tail of its log.
        """
        started = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for who started it, and then stops it in order
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.kill()
            raise RuntimeError(f"the server did not start; {self._log} ends:\n{self.tail()}")
        self.address = json.loads(line)["address"]
        self.ready_s = time.monotonic() - started

    def kill(self) -> None:
        """End it by SIGKILL; do nothing if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._ended()

    def stop(self) -> int:
        """End it by SIGTERM, and return its exit code."""
        assert self._process is not None, "it does not run"
        self._process.terminate()
        return self._ended()

    def tail(self) -> str:
        """Return the end of its log."""
        return self._log.read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]

    def _ended(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdout is not None
        code = process.wait()
        process.stdout.close()
        return code

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        if error is not None:
            self.kill()
            return
        code = self.stop()
        assert code == 0, f"the server ended with {code}:\n{self.tail()}"


def name_server(folder: Path, port: int = 0) -> ServerProcess:
    """Return a name server on a port of this machine: a free one, if none is given."""
    words = ("namesrv", "--port", str(port), "--bind", "127.0.0.1", "--json")
    settings = folder / "namesrv.conf"
    settings.write_text(f"kvConfigPath={folder}/kvConfig.json\n")
    command = [sys.executable, "-m", "rocketpy.broker_core.cli", *words, "-c", str(settings)]
    return ServerProcess(command, log=folder / "namesrv.log")


def broker(settings: Mapping[str, str], *, log: Path) -> ServerProcess:
    """Return a broker, by settings of `broker.conf`."""
    words = [f"{name}={value}" for name, value in settings.items()]
    return ServerProcess([sys.executable, "-m", "tests.broker_process", *words], log=log)


def main() -> None:
    from rocketpy.broker_core.broker.broker import Broker
    from rocketpy.broker_core.broker.settings import BrokerSettings
    from rocketpy.broker_core.net.running import run

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    server = Broker(BrokerSettings.parse(given))

    def tell() -> None:
        print(json.dumps({"address": str(server.host)}), flush=True)

    run(server, tell)


if __name__ == "__main__":
    main()
