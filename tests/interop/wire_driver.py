"""Real Java clients, played in named scenarios against a cluster: java/wire/WireDriver.java.

One JVM plays all scenarios that a run asks for, several at once: most of them wait for something
most of the time. Each has topics and groups of its own. By hand, against any running cluster:

    python -m tests.interop.wire_driver --client 4.9.7 127.0.0.1:9876 DefaultCluster sync_send query
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.cluster_addresses import Target
from tests.interop.installation import VERSION, VERSION_4, wire_driver_classes
from tests.interop.java_process import java_command

CLIENT_VERSIONS = (VERSION, VERSION_4)
AT_ONCE = 6
RUN_TIMEOUT_S = 280.0
LOG_TAIL_CHARACTERS = 4000

# In the order of the driver's table; a test holds the two lists to each other.
SCENARIOS = (
    "reset_by_time",
    "rebalance_kill",
    "transactions",
    "retry_to_dead_letter",
    "delay_levels",
    "timer_recall",
    "lite_pull_subscribe",
    "trace",
    "rebalance_join",
    "rebalance_leave",
    "orderly_push",
    "concurrent_push",
    "offsets_kept",
    "broadcast",
    "tag_filter",
    "sql_filter",
    "request_reply",
    "sync_send",
    "async_send",
    "oneway_send",
    "batch_send",
    "compressed_body",
    "refusals",
    "pull_by_offset",
    "lite_pull_assign",
    "long_polling",
    "query",
    "running_info",
)
ONLY_IN_5 = frozenset({"timer_recall"})


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """How a scenario went; `saw` is what it reports beyond its checks, by name."""

    scenario: str
    passed: bool
    seconds: float
    saw: dict[str, Any]
    failure: str


def scenarios_of(client_version: str) -> list[str]:
    """Return the scenarios that a client of this version can play."""
    return [s for s in SCENARIOS if client_version == VERSION or s not in ONLY_IN_5]


def listed_scenarios(client_version: str) -> list[str]:
    """Return the scenarios of the driver's own table."""
    with tempfile.TemporaryDirectory(prefix="rocketpy-wire-") as home:
        command = _command("list", client_version=client_version, home=Path(home))
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def play(
    target: Target,
    scenarios: Sequence[str],
    *,
    client_version: str = VERSION,
    at_once: int = AT_ONCE,
) -> dict[str, ScenarioResult]:
    """Play scenarios and return their results by name.

    A scenario without a result, because the JVM ended or the time was up, has failed.
    """
    fresh = f"wire-{client_version.replace('.', '')}-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory(prefix="rocketpy-wire-") as folder:
        home = Path(folder)
        command = _command(
            *(target.namesrv_addr, target.cluster, fresh, str(at_once), *scenarios),
            client_version=client_version,
            home=home,
        )
        ending = _finish(command, home=home)
        lines = (home / "results").read_text("utf-8").splitlines()
        tail = (home / "errors").read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]
    results = {r.scenario: r for r in (ScenarioResult(**json.loads(line)) for line in lines)}
    text = f"the driver {ending} without a result of this scenario:\n{tail}"
    return {s: results.get(s, ScenarioResult(s, False, 0.0, {}, text)) for s in scenarios}


def _command(*arguments: str, client_version: str, home: Path) -> list[str]:
    return java_command(
        *("WireDriver", *arguments),
        class_path=wire_driver_classes(client_version).class_path,
        home=home,
        options=("-Drocketmq.client.logLevel=WARN",),
    )


def _finish(command: Sequence[str], *, home: Path) -> str:
    """Run a command with its output in files and return how it ended."""
    with (home / "results").open("wb") as results, (home / "errors").open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=results, stderr=errors, cwd=home
        )
        started_at = time.monotonic()
        try:
            process.wait(RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"was stopped after {time.monotonic() - started_at:.0f} s"
        finally:
            process.kill()
            process.wait()
    return f"ended with {process.returncode}"


def main() -> None:
    """Play scenarios, all of them if none is named, and print how they went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", choices=CLIENT_VERSIONS, default=VERSION)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("namesrv_addr")
    parser.add_argument("cluster")
    parser.add_argument("scenarios", nargs="*")
    given = parser.parse_args()
    results = play(
        Target(given.namesrv_addr, given.cluster, ()),
        given.scenarios or scenarios_of(given.client),
        client_version=given.client,
        at_once=given.at_once,
    )
    for result in results.values():
        outcome = "passed" if result.passed else "FAILED"
        print(f"{result.scenario:22} {outcome} {result.seconds:5.1f} s  {result.saw}")
        if result.failure:
            print(result.failure)


if __name__ == "__main__":
    main()
