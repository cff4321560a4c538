"""Apache's mqadmin prints the same of our broker and name server as of Apache's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.interop.mqadmin import STEPS, Printed, mqadmin, recorded, run_steps

from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.nameserver.server import NameServer
from rocketpy.broker_core.nameserver.settings import NameServerSettings
from rocketpy.broker_core.net.loop_thread import LoopThread

CLUSTER, BROKER = "interop", "interop-broker"
SETTINGS = {
    "brokerClusterName": CLUSTER,
    "brokerName": BROKER,
    "brokerIP1": "127.0.0.1",
    "listenPort": "0",
    "mappedFileSizeCommitLog": str(64 << 20),
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
    "enabledAppendPropCRC": "false",  # as with Apache's: sizes and places are the same then
}
# Topics of parts of Apache's broker that ours has not: RocksDB, POP, slaves that act as masters.
NOT_OURS = {
    "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
    "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
    f"rmq_sys_REVIVE_LOG_{CLUSTER}",
    f"rmq_sys_SYNC_BROKER_MEMBER_{BROKER}",
}
# What these print are lists of names, with values of their own.
BY_NAME = ("getBrokerConfig", "getNamesrvConfig")
OURS = {
    "rebalanceLockMaxLiveTime",  # a system property with Apache's
    # of brokers alone with Apache's, whose name server has no metrics
    *("metricsExporterType", "metricsPromExporterHost", "metricsPromExporterPort"),
}
# Settings whose defaults are better for who has nothing configured.
BETTER = {
    "enablePropertyFilter",
    "maxTransferBytesOnMessageInMemory",
    "maxTransferCountOnMessageInMemory",
    "waitTimeMillsInSendQueue",
}
OF_THE_RUN = {
    *("bindAddress", "listenPort", "storePathCommitLog", "storePathRootDir", "configStorePath"),
    *("kvConfigPath", "maxHashSlotNum", "maxIndexNum", "fileReservedTime"),
    *("diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio", "diskSpaceWarningLevelRatio"),
}
# A value that cannot be is refused by ours, and passed over by Apache's.
DIFFERENT = {"updateBrokerConfig -b {address} -k flushDiskType -v NO_SUCH_FLUSH"}


@contextmanager
def our_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Give the names of a name server and a broker of ours that run meanwhile."""
    thread = LoopThread("mqadmin-test")
    own = {"listenPort": "0", "bindAddress": "127.0.0.1", "kvConfigPath": str(folder / "kv.json")}
    name_server = NameServer(NameServerSettings().changed(own))
    thread.run(name_server.start(), timeout_s=30)
    given = {"storePathRootDir": str(folder / "store"), "namesrvAddr": name_server.address}
    broker = Broker(BrokerSettings.parse({**SETTINGS, **given}))
    thread.run(broker.start(), timeout_s=30)
    try:
        yield {
            "name_server": name_server.address,
            "cluster": CLUSTER,
            "broker": BROKER,
            "address": f"{broker.host.address}:{broker.host.port}",
        }
    finally:
        thread.run(broker.stop(), timeout_s=30)
        thread.run(name_server.stop(), timeout_s=30)
        thread.stop()


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    with (
        our_cluster(tmp_path_factory.mktemp("mqadmin")) as names,
        mqadmin(names["name_server"]) as admin,
    ):
        return run_steps(admin, names)


def comparable(output: str) -> list[str]:
    """Return the lines, without rates and times of the run, whatever their order."""
    output = re.sub(r"\d+\.\d+(E-?\d+)?", "<rate>", output)
    output = re.sub(r"(<rate>|<ms>|<id>|<host>|<client>|<address>|<unique key>) +", r"\1 ", output)
    output = re.sub(r"(OK, )\d+", r"\1<topics>", output)  # ours has fewer topics of its own
    return sorted(output.splitlines())


def values(output: str, sign: str) -> dict[str, str]:
    """Return what an output lists by name; the folder in one of the names is left out."""
    pairs = [line.partition(sign) for line in output.splitlines() if sign in line]
    named = {name.strip(): value.strip() for name, _, value in pairs}
    return {re.sub("_/.*", "_", name): value for name, value in named.items()}


@pytest.mark.parametrize("line", [step.line for step in STEPS])
def test_a_command_prints_what_it_prints_of_apaches_broker(line: str, printed: Printed) -> None:
    ours, theirs = printed[line], recorded()[line]
    if line in DIFFERENT:
        assert "CODE: 29" in ours
    elif line == "topicList":
        assert set(ours.splitlines()) == set(theirs.splitlines()) - NOT_OURS
    elif line == "brokerStatus -b {address}":
        assert values(ours, ":").keys() >= values(theirs, ":").keys()
    elif line.startswith(BY_NAME):
        found, known = values(ours, " = "), values(theirs, " = ")
        assert {name for name in found.keys() - known.keys() if not name.startswith("tls.")} <= OURS
        differing = {name for name in found.keys() & known.keys() if found[name] != known[name]}
        assert differing <= OF_THE_RUN | BETTER
    elif line.startswith("clusterList -m"):
        assert comparable(ours)[0] == comparable(theirs)[0]
    else:
        assert comparable(ours) == comparable(theirs)
