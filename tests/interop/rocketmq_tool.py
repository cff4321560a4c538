"""Apache's Java clients as Python functions: lists of dicts in, lists of dicts out.

The clients live in one JVM with RocketMqTool.java, started by the first call. Names inside the
dicts are those of the Java tool's JSON (`queueOffset`), bodies are bytes under `body`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.java_process import java_command

CALL_TIMEOUT_S = 180

Answer = dict[str, Any]


class RocketMqTool:
    """Runs the Java tool against one name server; its errors go to a file in `home`."""

    def __init__(
        self, class_path: str, namesrv_addr: str, *, home: Path, options: Sequence[str] = ()
    ) -> None:
        self._command = java_command(
            *("RocketMqTool", namesrv_addr), class_path=class_path, home=home, options=options
        )
        self._errors = home / "RocketMqTool.log"
        self._process: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """End the JVM; does nothing when there is none."""
        if self._process is not None:
            with self._process:
                self._process.kill()
            self._process = None

    def pull(self, topics: Iterable[str]) -> list[Answer]:
        """Return every message of the topics: all of its fields, in topic and queue order."""
        messages = self._call("pull", [{"topic": topic} for topic in topics])
        for message in messages:
            message["body"] = base64.b64decode(message.pop("bodyBase64"))
        return messages

    def query(self, keys: Iterable[tuple[str, str]], *, kind: str = "K") -> list[Answer]:
        """Return for each (topic, key) the `messages` that the index files find.

        `kind` is Apache's index type: K for KEYS, U for the unique key, T for the tag.
        """
        return self._call(
            "query", [{"topic": topic, "key": key, "type": kind} for topic, key in keys]
        )

    def send(self, topic: str, messages: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Send messages singly: `body`, and if wanted `tags`, `keys`, `properties`, `flag`.

        With `delayLevel` or `deliverTimeMs` they wait; their receipts say where.
        """
        return self.send_all([(topic, messages, False)])

    def send_batch(self, topic: str, messages: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Send messages as one batch: one request, one record each."""
        return self.send_all([(topic, messages, True)])

    def send_all(
        self, sends: Iterable[tuple[str, Sequence[Mapping[str, Any]], bool]]
    ) -> list[Answer]:
        """Send several (topic, messages, as a batch) from one JVM; return a receipt per message."""
        return self._call(
            "send",
            [
                {"topic": topic, "messages": [_as_json(m) for m in messages], "batch": is_batch}
                for topic, messages, is_batch in sends
            ],
        )

    def offsets(self, timestamps_ms: Mapping[str, Sequence[int]]) -> list[Answer]:
        """Return per queue `min`, `max`, and the `lower` and `upper` offset of each timestamp.

        `timestamps_ms` gives the timestamps to look for by topic.
        """
        return self._call(
            "offsets",
            [{"topic": topic, "timestamps": list(t)} for topic, t in timestamps_ms.items()],
        )

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> list[Answer]:
        """Set a group's offsets of a topic, by queue id."""
        requests = [
            {"group": group, "topic": topic, "queueId": queue_id, "offset": queue_offset}
            for queue_id, queue_offset in offsets.items()
        ]
        answers = self._call("commit", requests)
        assert answers == requests
        return answers

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's offsets of a topic by queue id; queues without one are left out."""
        answers = self._call("committed", [{"group": group, "topic": topic}])
        return {a["queueId"]: a["offset"] for a in answers if a["offset"] >= 0}

    def consume(self, group: str, topic: str, *, retried: int, fails: int) -> list[Answer]:
        """Let a group consume until it was given `retried` messages again; return all it got.

        A message that comes again fails until it was tried `fails` times; delay level 1.
        """
        request = {"group": group, "topic": topic, "retried": retried, "fails": fails}
        messages = self._call("consume", [request])
        for message in messages:
            message["body"] = base64.b64decode(message.pop("bodyBase64"))
        return messages

    def send_back(self, group: str, topic: str, physical_offset: int, *, level: int) -> None:
        """Send a message back as a client does that leaves the number of tries to the broker."""
        request = {"group": group, "topic": topic, "offset": physical_offset, "delayLevel": level}
        self._call("sendBack", [request])

    def _call(self, command: str, requests: Sequence[Mapping[str, Any]]) -> list[Answer]:
        process = self._process = self._process or self._start()
        alarm = threading.Timer(CALL_TIMEOUT_S, process.kill)
        alarm.start()
        try:
            answers = _exchange(process, {"command": command, "requests": requests})
        finally:
            alarm.cancel()
        if answers is None:
            process.wait()
            self.close()  # the next call starts another
            printed = self._errors.read_text("utf-8")[-4000:]
            raise RuntimeError(f"RocketMqTool {command} ended by {process.returncode}:\n{printed}")
        return answers

    def _start(self) -> subprocess.Popen[str]:
        with self._errors.open("w") as errors:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                start_new_session=True,  # as the servers: ended by close(), not by Ctrl-C
            )


def _exchange(process: subprocess.Popen[str], call: Mapping[str, Any]) -> list[Answer] | None:
    """Return the answers to a call, None when the tool ended before they were complete."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
    answers: list[Answer] = []
    for line in process.stdout:
        if line == "\n":
            return answers
        answers.append(json.loads(line))
    return None


def _as_json(message: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in message.items() if name != "body"}
    return {"bodyBase64": base64.b64encode(message["body"]).decode("ascii"), **rest}
