"""Apache's Java clients that write traces; run this module to record what they write.

`python -m tests.interop.java_tracer` runs clients of both versions against a broker of ours, and
keeps the messages of its trace topic in `tests/golden/traces.jsonl`.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.interop.installation import JAVA, VERSION, VERSION_4, compiled
from tests.interop.java_process import java_command

from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.metadata.names import TRACE_TOPIC

RECORDED = Path(__file__).parent.parent / "golden" / "traces.jsonl"
CALL_TIMEOUT_S = 120.0


class JavaTracer:
    """One JVM with Java clients of a cluster that trace; TraceTool.java has the commands."""

    def __init__(self, namesrv_addr: str, *, home: Path, version: str = VERSION) -> None:
        sources = sorted((JAVA / "trace").glob("*.java"))
        class_path = compiled(sources, name="trace", version=version).class_path
        command = java_command("TraceTool", namesrv_addr, class_path=class_path, home=home)
        self._errors = home / "TraceTool.log"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                start_new_session=True,
            )

    def __enter__(self) -> JavaTracer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()

    def run(self, command: str) -> dict[str, Any]:
        """Return the answer to a command; what it traced is written then."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        alarm = threading.Timer(CALL_TIMEOUT_S, process.kill)
        alarm.start()
        try:
            process.stdin.write(command + "\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("{"):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
        finally:
            alarm.cancel()
        errors = self._errors.read_text("utf-8")[-3000:]
        raise RuntimeError(f"the Java side died at {command!r}\n{errors}")


# Consumers of 5.5.0 trace no message without TRACE_ON, which those of a batch have not.
COMMANDS = (
    "send billing orders paid k1,k2 0 hello",
    "send shop/billing orders paid k3 0 hello",
    "send billing orders paid k4 1 later",
    "batch billing batches a,b,c",
    "transaction billing transacted commit kept",
    "transaction billing transacted rollback dropped",
    "consume readers orders concurrently 1 2",
    "consume ordered orders orderly 1 4",
    "poll polling orders 2",
)


def _record() -> None:
    lines = []
    settings = {"traceTopicEnable": "true", "messageDelayLevel": "1s 1s 1s 1s"}
    topics = ["orders", "batches", "transacted", "shop%orders"]
    for version in (VERSION, VERSION_4):
        with (
            tempfile.TemporaryDirectory() as home,
            local_broker(settings=settings, topics=topics) as broker,
            JavaTracer(broker.namesrv_addr, home=Path(home), version=version) as java,
            broker.store() as store,
        ):
            start = 0
            for command in COMMANDS:
                answer = java.run(command)
                for row in store.read(TRACE_TOPIC, start=start).read_all().to_pylist():
                    lines.append(
                        {
                            "version": version,
                            "command": command,
                            "answer": answer,
                            "properties": dict(row["properties"]),
                            "body": row["body"].decode(),
                        }
                    )
                    start = row["queue_offset"] + 1
    RECORDED.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    _record()
