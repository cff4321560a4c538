"""A real Apache RocketMQ name server and broker on a given store directory.

Everything listens on 127.0.0.1 with free ports; only the broker's HA port can't be bound to an
address and listens on all. Logs and configuration lie in a temporary folder, never in the store.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.interop.installation import Installation, install
from tests.interop.java_process import JavaProcess, java_command
from tests.interop.registration import Sign, register
from tests.interop.rocketmq_tool import RocketMqTool

LOOPBACK = "127.0.0.1"
BROKER_NAME = "interop-broker"

Setting = str | int | bool

DEFAULT_SETTINGS: Mapping[str, Setting] = {
    "brokerClusterName": "interop",
    "brokerName": BROKER_NAME,
    "brokerId": 0,
    "brokerRole": "ASYNC_MASTER",
    "flushDiskType": "ASYNC_FLUSH",
    "brokerIP1": LOOPBACK,
    "brokerIP2": LOOPBACK,
    "bindAddress": LOOPBACK,
    "timerWheelEnable": False,  # 38 MB of file and a start that waits for it
    "transactionMetricFlushInterval": 200,  # the first one is a busy loop, by default of 10 s
    # Machines of tests are slow at times; a broker that says "busy" is not what is tested.
    "waitTimeMillsInSendQueue": 10_000,
    "osPageCacheBusyTimeOutMills": 30_000,
    # The store must stay as it is: nothing expires, and a full disk elsewhere is not our matter.
    "fileReservedTime": 24 * 365 * 100,
    "diskMaxUsedSpaceRatio": 95,
    "diskSpaceCleanForciblyRatio": 98,
    "diskSpaceWarningLevelRatio": 99,
    "cleanFileForciblyEnable": False,
}


# Servers of 4.x look for their logging in their home.
NO_LOGS = {f"conf/logback_{name}.xml": "<configuration/>" for name in ("namesrv", "broker")}


class ApacheBroker:
    """A name server and a broker, started on entry and stopped on exit.

    `settings` are Apache's broker settings (`mappedFileSizeCommitLog` and so on); they come after
    the defaults above and win over them. The store directory is made when missing. With
    `namesrv_addr` it registers at that name server, and there is none of its own. `installation` is
    that of another version, `files` are texts by their paths in the home of both, `options` are
    words for their JVMs, `sign` adds to the fields of a request what a protected broker wants.
    """

    def __init__(
        self,
        store: Path,
        *,
        settings: Mapping[str, Setting],
        namesrv_addr: str | None = None,
        installation: Installation | None = None,
        files: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        sign: Sign | None = None,
    ) -> None:
        self._store = store
        self._foreign_namesrv_addr = namesrv_addr
        self._settings = {**DEFAULT_SETTINGS, **settings}
        self._installation = installation or install()
        self._files, self._options, self._sign = files or {}, options, sign
        self._processes: list[JavaProcess] = []  # in the order of their start
        # There from start() on:
        self._home: Path
        self.namesrv_addr: str
        self.tool: RocketMqTool  # Java clients that talk to this broker

    def __enter__(self) -> ApacheBroker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.stop()
        else:
            self.kill()

    def start(self) -> None:
        """Start both and return when the broker is registered and serves.

        Raises:
            RuntimeError: one of them did not come up; shows the tail of its log.
        """
        for tries_left in (2, 1, 0):
            try:
                return self._start_once()
            except RuntimeError as error:
                # A port that was free a moment ago may be the one that a client just got.
                if "Address already in use" not in str(error) or not tries_left:
                    raise
        return None

    def _start_once(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="rocketpy-apache-"))
        for name, text in self._files.items():
            path = self._home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        name_server_port, broker_port, ha_port = free_ports()
        self.namesrv_addr = self._foreign_namesrv_addr or f"{LOOPBACK}:{name_server_port}"
        # Clients of 5.5.0, whatever the broker is.
        self.tool = RocketMqTool(install().class_path, self.namesrv_addr, home=self._home)
        try:
            if self._foreign_namesrv_addr is None:
                self._launch_name_server(name_server_port)
            self._launch(
                "org.apache.rocketmq.broker.BrokerStartup",
                {
                    **self._settings,
                    "namesrvAddr": self.namesrv_addr,
                    "listenPort": broker_port,
                    "haListenPort": ha_port,
                    "storePathRootDir": str(self._store),
                    "storePathCommitLog": str(self._store / "commitlog"),
                },
            )
            host, _, port = self.namesrv_addr.partition(":")
            name_server = (host, int(port))
            register((LOOPBACK, broker_port), name_server, topic=BROKER_NAME, sign=self._sign)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the broker by SIGTERM: the store is closed cleanly.

        Raises:
            RuntimeError: it had died before or did not end in time; shows the tail of its log.
        """
        try:
            self._processes[-1].stop()
        finally:
            self.kill()  # the name server has nothing to save

    def kill(self) -> None:
        """End what is still running by SIGKILL; does nothing when nothing is."""
        if not self._processes:
            return
        self.tool.close()
        while self._processes:
            self._processes.pop().kill()
        shutil.rmtree(self._home)

    def _launch_name_server(self, port: int) -> None:
        self._launch(
            "org.apache.rocketmq.namesrv.NamesrvStartup",
            {
                "listenPort": port,
                "bindAddress": LOOPBACK,
                "kvConfigPath": f"{self._home}/kvConfig.json",
            },
        )

    def _launch(self, main_class: str, settings: Mapping[str, Setting]) -> None:
        name = main_class.rpartition(".")[2]
        configuration = self._home / f"{name}.conf"
        configuration.write_text(
            "".join(f"{key}={as_property(value)}\n" for key, value in settings.items())
        )
        command = java_command(
            *(main_class, "-c", str(configuration)),
            class_path=self._installation.class_path,
            home=self._home,
            options=self._options,
        )
        process = JavaProcess(command, home=self._home, log=self._home / f"{name}.log")
        self._processes.append(process)
        process.wait_for("boot success")


def as_property(value: Setting) -> str:
    """Return a setting as it stands in a configuration file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def free_ports() -> tuple[int, int, int]:
    """Return free ports for the name server, the broker (and two below it) and HA."""
    while True:
        with socket.socket() as name_server, socket.socket() as broker, socket.socket() as ha:
            for holder in (name_server, broker, ha):
                holder.bind((LOOPBACK, 0))
            ports = (name_server, broker, ha)
            chosen = tuple(holder.getsockname()[1] for holder in ports)
            with socket.socket() as vip:
                try:
                    vip.bind((LOOPBACK, chosen[1] - 2))
                except OSError:
                    continue
            return chosen[0], chosen[1], chosen[2]
