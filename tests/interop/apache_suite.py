"""Apache's own integration tests of 4.9.7, run against a cluster that is not in their JVM.

Their base class is replaced by ours (java/suite/BaseConf.java), which takes the addresses of a
`Target` of two brokers. Two classes of the jar are left out: they look inside a broker of their
own. By hand, against any running cluster:

    python -m tests.interop.apache_suite 127.0.0.1:9876 DefaultCluster broker-a,broker-b \\
        smoke.NormalMessageSendAndRecvIT client.producer.order.OrderMsgIT
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.interop.cluster_addresses import Target
from tests.interop.installation import VERSION_4, install_4
from tests.interop.java_process import java_command

JVM_TIMEOUT_S = 1800.0
LOG_TAIL_CHARACTERS = 3000
ENDED_WELL = "ended with 0"
PACKAGE = "org.apache.rocketmq.test."

WITHOUT_TESTS = frozenset({"client.consumer.broadcast.BaseBroadCastIT"})
INSIDE_A_BROKER = frozenset({"base.dledger.DLedgerProduceAndConsumeIT"})

# They fail when a delayed message comes some hundreds of ms late: they are better run alone.
TIMED = frozenset({"delay.NormalMsgDelayIT"})

# One or two per subject, of those that take a few seconds each.
BOUNDED = (
    "smoke.NormalMessageSendAndRecvIT",
    "client.consumer.balance.NormalMsgStaticBalanceIT",
    "client.consumer.broadcast.normal.NormalMsgTwoSameGroupConsumerIT",
    "client.consumer.filter.SqlFilterIT",
    "client.consumer.tag.TagMessageWith1ConsumerIT",
    "client.producer.async.AsyncSendWithMessageQueueSelectorIT",
    "client.producer.batch.BatchSendIT",
    "client.producer.exception.msg.MessageExceptionIT",
    "client.producer.oneway.OneWaySendIT",
    "client.producer.order.OrderMsgIT",
    "client.producer.querymsg.QueryMsgByIdIT",
    "client.producer.querymsg.QueryMsgByKeyIT",
    "client.producer.transaction.TransactionalMsgIT",
)


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """How one test went: `outcome` is passed, failed or ignored; `text` is the trace."""

    class_name: str  # without Apache's package
    method: str
    outcome: str
    seconds: float
    text: str


def suite_classes() -> list[str]:
    """Return the names of the test classes in Apache's jar, without their package."""
    jar = install_4().jars / f"rocketmq-test-{VERSION_4}-tests.jar"
    with zipfile.ZipFile(jar) as classes:
        names = [name.removesuffix(".class").replace("/", ".") for name in classes.namelist()]
    found = [
        name.removeprefix(PACKAGE) for name in names if name.endswith("IT") and "$" not in name
    ]
    return sorted(set(found) - WITHOUT_TESTS - INSIDE_A_BROKER)


def run_suite(
    target: Target, class_names: Sequence[str], *, per_jvm: int = 1, at_once: int = 1
) -> Iterator[SuiteResult]:
    """Run test classes, `per_jvm` of them in a JVM and `at_once` JVMs; yield results as they come.

    A class whose JVM ends before it has run is yielded as failed, with an empty method.
    """
    shares = [class_names[n : n + per_jvm] for n in range(0, len(class_names), per_jvm)]
    with ThreadPoolExecutor(at_once) as pool:
        for run in as_completed([pool.submit(_run_jvm, target, share) for share in shares]):
            yield from run.result()


def _run_jvm(target: Target, class_names: Sequence[str]) -> list[SuiteResult]:
    with tempfile.TemporaryDirectory(prefix="rocketpy-suite-") as home:
        command = java_command(
            *("SuiteRunner", *(PACKAGE + name for name in class_names)),
            class_path=install_4().class_path,
            home=Path(home),
            options=(
                f"-Drocketpy.namesrv={target.namesrv_addr}",
                f"-Drocketpy.cluster={target.cluster}",
                f"-Drocketpy.brokers={','.join(target.broker_names)}",
                "-Drocketmq.client.logLevel=WARN",
            ),
        )
        errors = Path(home) / "errors.log"
        with errors.open("wb") as sink:
            printed, ending = _finish(command, home=home, errors=sink.fileno())
        results = [_parsed(line) for line in printed.splitlines() if line.startswith("{")]
        tail = errors.read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]
    return results + [
        SuiteResult(
            name, "", "failed", 0.0, f"its JVM {ending} before this class was done:\n{tail}"
        )
        for name in _unfinished(class_names, results, is_cut=ending != ENDED_WELL)
    ]


def _unfinished(
    class_names: Sequence[str], results: Sequence[SuiteResult], *, is_cut: bool
) -> list[str]:
    """Return the classes without results, and that of the last result if its JVM was cut short."""
    seen = {result.class_name for result in results}
    last = [results[-1].class_name] if results and is_cut else []
    return last + [name for name in class_names if name not in seen]


def _finish(command: Sequence[str], *, home: str, errors: int) -> tuple[str, str]:
    """Return what a JVM printed and how it ended."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=home
    ) as process:
        try:
            printed, _ = process.communicate(timeout=JVM_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
            return printed.decode("utf-8"), f"was stopped after {JVM_TIMEOUT_S:.0f} s"
        except BaseException:
            process.kill()
            raise
    return printed.decode("utf-8"), f"ended with {process.returncode}"


def _parsed(line: str) -> SuiteResult:
    values = json.loads(line)
    return SuiteResult(
        class_name=values["class"].removeprefix(PACKAGE),
        method=values["method"],
        outcome=values["outcome"],
        seconds=values["seconds"],
        text=values["text"],
    )


def main() -> None:
    """Run test classes, all of them if none is named, and print how their tests went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-jvm", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("namesrv_addr")
    parser.add_argument("cluster")
    parser.add_argument("broker_names", help="two, with a comma between them")
    parser.add_argument("classes", nargs="*")
    given = parser.parse_args()
    target = Target(given.namesrv_addr, given.cluster, tuple(given.broker_names.split(",")))
    names = given.classes or suite_classes()
    for result in run_suite(target, names, per_jvm=given.per_jvm, at_once=given.at_once):
        line = f"{result.outcome:7} {result.seconds:6.1f} s  {result.class_name}.{result.method}"
        print(line, result.text, flush=True)


if __name__ == "__main__":
    main()
