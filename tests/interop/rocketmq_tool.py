"""Apache's Java clients as Python functions: lists of dicts in, lists of dicts out.

Each call starts one JVM with RocketMqTool.java, so ask for much at once. Names inside the dicts are
those of the Java tool's JSON (`queueOffset`), bodies are bytes under `body`.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.interop.java_process import java_command

CALL_TIMEOUT_S = 180

Answer = dict[str, Any]


class RocketMqTool:
    """Runs the Java tool against one name server."""

    def __init__(self, class_path: str, namesrv_addr: str, *, home: Path) -> None:
        self._class_path = class_path
        self._namesrv_addr = namesrv_addr
        self._home = home

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
        """Send messages (`body`, and if wanted `tags`, `keys`, `properties`, `flag`) singly."""
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

    def _call(self, command: str, requests: Sequence[Mapping[str, Any]]) -> list[Answer]:
        done = subprocess.run(
            java_command(
                *("RocketMqTool", command, self._namesrv_addr),
                class_path=self._class_path,
                home=self._home,
            ),
            input="".join(json.dumps(request) + "\n" for request in requests).encode(),
            capture_output=True,
            timeout=CALL_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"RocketMqTool {command}:\n{done.stderr.decode()[-4000:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]


def _as_json(message: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in message.items() if name != "body"}
    return {"bodyBase64": base64.b64encode(message["body"]).decode("ascii"), **rest}
