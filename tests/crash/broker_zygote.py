"""A zygote that forks brokers: each serves until it is killed, or kills itself."""

from __future__ import annotations

from typing import Any

from tests.crash.killing_disk import KillingDisk
from tests.crash.zygote import Diary, main

from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.net.running import run


def serve(task: dict[str, Any], diary: Diary) -> None:
    """Serve until SIGTERM; die where the task says."""
    disk = KillingDisk(task["kill_at"])
    if task["phase"] == "open":
        disk.arm()
    broker = Broker(BrokerSettings.parse(task["settings"]), disk=disk)

    def ready() -> None:
        diary.note("serves")
        if task["phase"] == "serve":
            disk.arm()

    run(broker, ready)
    diary.note("stopped")


if __name__ == "__main__":
    main(serve)
