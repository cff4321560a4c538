"""Apache's mqadmin 5.5.0: many commands in one JVM, and what each printed.

The same command lines run against any cluster; what they print is compared after it was cleared of
times, addresses and ids. What Apache's own broker makes them print is kept in
`mqadmin-5.5.0.json`; run this module to record it anew: `python -m tests.interop.mqadmin`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.interop.installation import install
from tests.interop.java_process import java_command

HERE = Path(__file__).parent
RECORDED = HERE / "mqadmin-5.5.0.json"
CALL_TIMEOUT_S = 90.0

Printed = dict[str, str]  # by command line


class Step(NamedTuple):
    """A command line; words in braces are names of the cluster, or were kept by steps before.

    `keeps` names what later steps need of its output: a pattern with one group each.
    """

    line: str
    keeps: Mapping[str, str] = {}


ORDERS, BILLS, GROUP = "orders", "bills", "billing"

STEPS: Sequence[Step] = (
    Step("topicList"),
    Step("updateTopic -b {address} -t orders -r 4 -w 4"),
    Step("updateTopic -c {cluster} -t bills -r 2 -w 2"),
    Step("updateTopic -c {cluster} -t bills -r 2 -w 2 -a +message.type=NORMAL"),
    Step("updateTopic -b {address} -t TBW102 -r 4 -w 4"),
    Step("updateTopic -b {address} -t bad*name -r 4 -w 4"),
    Step("updateTopicPerm -b {address} -t bills -p 4"),
    Step("updateTopicPerm -b {address} -t bills -p 6"),
    Step("topicRoute -t orders"),
    Step("topicRoute -t bills"),
    Step("topicRoute -t nosuch"),
    Step("topicClusterList -t orders"),
    Step("updateSubGroup -b {address} -g billing -s true -m true -d true -q 1 -r 16"),
    Step("@producer\tproducers\torders"),
    *(Step(f"@send\torders\t{n % 4}\tt{n % 2}\tk{n}\thello {n}") for n in range(8)),
    Step("sendMessage -t bills -p from-mqadmin -k kb -c tb -b {broker} -i 1"),
    Step("topicStatus -t orders"),
    Step("topicStatus -t nosuch"),
    Step("consumeMessage -t bills -g reading"),
    Step("printMsg -t bills", {"message_id": r"msgId=(\w{32})", "unique": r"UNIQ_KEY=(\w+)"}),
    Step("printMsgByQueue -t orders -a {broker} -i 2 -p true"),
    Step("queryMsgById -i {message_id} -t bills"),
    Step("queryMsgByKey -t orders -k k5"),
    Step("queryMsgByKey -t orders -k nosuch"),
    Step("queryMsgByUniqueKey -t bills -i {unique}"),
    Step("queryMsgByOffset -t orders -b {broker} -i 1 -o 0"),
    Step("queryCq -t orders -q 1 -i 0 -b {address}"),
    Step("@consumer\tbilling\torders\t8"),
    Step("consumerConnection -g billing"),
    Step("consumerConnection -g nobody"),
    Step("producerConnection -g producers -t orders"),
    Step("producerConnection -g nobody -t orders"),
    Step("consumerStatus -g billing"),
    Step("@stop"),
    Step("consumerProgress"),
    Step("consumerProgress -g billing"),
    Step("consumerProgress -g nosuch"),
    Step("resetOffsetByTime -g billing -t orders -s 0"),
    Step("consumerProgress -g billing -t orders"),
    Step("brokerConsumeStats -b {address}"),
    Step("skipAccumulatedMessage -g billing -t orders"),
    Step("resetOffsetByTime -g billing -t orders -s now"),
    Step("cloneGroupOffset -s billing -d billing2 -t orders -o false"),
    Step("getConsumerConfig -g billing"),
    Step("clusterList"),
    Step("clusterList -m"),
    Step("brokerStatus -b {address}"),
    Step("getBrokerConfig -b {address}"),
    Step("updateBrokerConfig -b {address} -k fileReservedTime -v 48"),
    Step("updateBrokerConfig -b {address} -k brokerConfigPath -v /x"),
    Step("updateBrokerConfig -b {address} -k flushDiskType -v NO_SUCH_FLUSH"),
    Step("getBrokerConfig -b {address} -k fileReservedTime"),
    Step("statsAll -a"),
    Step("statsAll -t orders"),
    Step("wipeWritePerm -b {broker} -n {name_server}"),
    Step("topicRoute -t orders "),
    Step("addWritePerm -b {broker} -n {name_server}"),
    Step("topicRoute -t orders  "),
    Step("updateKvConfig -s ns1 -k a -v b"),
    Step("deleteKvConfig -s ns1 -k a"),
    Step("getNamesrvConfig"),
    Step("updateOrderConf -m put -t orders -v {broker}:4"),
    Step("updateOrderConf -m get -t orders"),
    Step("cleanExpiredCQ -b {address}"),
    Step("cleanUnusedTopic -b {address}"),
    Step("deleteExpiredCommitLog -b {address}"),
    Step("allocateMQ -t orders -i 127.0.0.1,127.0.0.3"),
    Step("haStatus -b {address}"),
    Step("deleteSubGroup -b {address} -g billing2"),
    Step("deleteTopic -c {cluster} -t bills"),
    Step("topicStatus -t bills"),
    Step("queryMsgById -i {message_id} -t bills "),
    Step("updateTopic -b {address} -t bills -r 2 -w 2"),
    Step("topicStatus -t bills "),
    Step("deleteTopic -c {cluster} -t TBW102"),
)


class MqAdmin:
    """One JVM with mqadmin in it; its errors go to a file in `home`."""

    def __init__(self, namesrv_addr: str, *, home: Path) -> None:
        command = java_command(
            *("MqAdminTool", namesrv_addr),
            class_path=install().class_path,
            home=home,
            options=("-Xmx256m", "-Djava.security.manager=allow", "-Duser.timezone=UTC"),
        )
        with (home / "MqAdminTool.log").open("w") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=home
            )

    def run(self, words: Sequence[str]) -> str:
        """Return what a command printed."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        alarm = threading.Timer(CALL_TIMEOUT_S, process.kill)
        alarm.start()
        try:
            process.stdin.write("\t".join(words).encode() + b"\n")
            process.stdin.flush()
            size = process.stdout.readline()
            if not size:
                raise RuntimeError(f"mqadmin died at {words}")
            return process.stdout.read(int(size)).decode()
        finally:
            alarm.cancel()

    def close(self) -> None:
        """End the JVM."""
        with self._process:
            self._process.kill()


@contextmanager
def mqadmin(namesrv_addr: str) -> Iterator[MqAdmin]:
    """Have mqadmin run against a name server."""
    home = Path(tempfile.mkdtemp(prefix="rocketpy-mqadmin-"))
    admin = MqAdmin(namesrv_addr, home=home)
    try:
        yield admin
    finally:
        admin.close()
        shutil.rmtree(home)


def run_steps(admin: MqAdmin, names: Mapping[str, str], steps: Sequence[Step] = STEPS) -> Printed:
    """Return what each step printed, cleared of what differs from run to run.

    `names` has name_server, cluster, broker and address: those of the cluster.
    """
    known, found = dict(names), dict[str, str]()
    for step in steps:
        line = step.line.format(**known)
        words = line.split("\t") if line.startswith("@") else line.split()
        printed = admin.run(words)
        for name, pattern in step.keeps.items():
            match = re.search(pattern, printed)
            known[name] = match[1] if match else "missing"
        found[step.line] = cleared(printed, names)
    return found


_TIMES = (
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.:]\d{3}", "<time>"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
    (r"\b1[789]\d{11}\b", "<ms>"),
    (r"\b[0-9A-F]{56}\b", "<unique key>"),
    (r"\b[0-9A-F]{32}\b", "<id>"),
    (r"127\.0\.0\.1:\d+", "<host>"),
    (r"\d+(\.\d+){3}@\S+", "<client>"),
)


def cleared(printed: str, names: Mapping[str, str]) -> str:
    """Return an output without times, addresses and ids; blanks at line ends go too."""
    for name in ("address", "name_server"):
        printed = printed.replace(names[name], f"<{name}>")
    for pattern, word in _TIMES:
        printed = re.sub(pattern, word, printed)
    return "\n".join(line.rstrip() for line in printed.splitlines())


def recorded() -> Printed:
    """Return what the steps printed with Apache's broker."""
    found: Printed = json.loads(RECORDED.read_text("utf-8"))
    return found


def _record() -> None:
    from tests.interop.apache import BROKER_NAME, ApacheBroker

    with tempfile.TemporaryDirectory() as folder:
        settings = {"timerWheelEnable": True, "mappedFileSizeCommitLog": 64 << 20}
        with (
            ApacheBroker(Path(folder) / "store", settings=settings) as broker,
            mqadmin(broker.namesrv_addr) as admin,
        ):
            address = re.search(rf"{BROKER_NAME}\s+0\s+(\S+)", admin.run(["clusterList"]))
            assert address is not None
            names = {
                "name_server": broker.namesrv_addr,
                "cluster": "interop",
                "broker": BROKER_NAME,
                "address": address[1],
            }
            printed = run_steps(admin, names)
    text = json.dumps(printed, indent=1, ensure_ascii=False, sort_keys=False)
    RECORDED.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    _record()
