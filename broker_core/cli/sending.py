"""`rocketpy send`: one message from the command line, or one for each line of stdin."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import typer

from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import count_text, counting, print_json
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.storage.existing import is_store

_LINES_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """All that messages have besides their bodies."""

    tags: str | None
    keys: tuple[str, ...]
    properties: dict[str, str]
    queue_id: int | None
    sharding_key: str | None

    delay_level: int = 0
    deliver_at: int | None = None

    def table(self, bodies: list[bytes]) -> pa.Table:
        """Return messages as rows, which are stored many at once."""
        columns: dict[str, pa.Array] = {"body": pa.array(bodies, pa.binary())}
        count = len(bodies)
        if self.tags is not None:
            columns["tags"] = pa.repeat(self.tags, count)
        if self.keys:
            columns["keys"] = pa.array([self.keys] * count, pa.list_(pa.string()))
        if self.properties:
            entries = [list(self.properties.items())] * count
            columns["properties"] = pa.array(entries, pa.map_(pa.string(), pa.string()))
        if self.queue_id is not None:
            columns["queue_id"] = pa.repeat(pa.scalar(self.queue_id, pa.int32()), count)
        if self.sharding_key is not None:
            columns["sharding_key"] = pa.repeat(self.sharding_key, count)
        if self.delay_level:
            columns["delay_level"] = pa.repeat(pa.scalar(self.delay_level, pa.int32()), count)
        if self.deliver_at is not None:
            columns["deliver_at"] = pa.repeat(pa.scalar(self.deliver_at, pa.int64()), count)
        return pa.table(columns)


def parse_properties(texts: Iterable[str]) -> dict[str, str]:
    """Read NAME=VALUE of each."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise typer.BadParameter(f"the property {name!r} has no value; give NAME=VALUE")
    return {name: value for name, _, value in pairs}


def send_all(at: At, topic: str, body: str | None, draft: Draft, *, as_json: bool) -> None:
    """Store a message, or the lines of stdin; a store or topic that is missing is not made."""
    remedy = f"make it with: rocketpy topic create {shlex.join([str(at), topic])}"
    try:
        if isinstance(at, ClusterAddress):
            from rocketpy.broker_core.cli.cluster_messages import send

            return send(at, topic, body, draft, as_json=as_json)
        if not is_store(at):
            raise typer.BadParameter(f"{at} is not a store; {remedy}", param_hint="PATH")
        with open_store(at) as store:
            if body is not None:
                _send(store, topic, body, draft, as_json=as_json)
            else:
                _send_lines(store, topic, draft, as_json=as_json)
    except TopicNotFoundError as error:
        near = difflib.get_close_matches(topic, error.known, n=1)
        hint = f"did you mean {near[0]!r}? Else {remedy}" if near else remedy
        what = f"there is no topic {topic!r} in {at}; {hint}"
        raise typer.BadParameter(what, param_hint="TOPIC") from error


def _send(store: Store, topic: str, body: str, draft: Draft, *, as_json: bool) -> None:
    receipt = store.send(
        topic,
        body,
        tags=draft.tags,
        keys=draft.keys,
        properties=draft.properties,
        queue_id=draft.queue_id,
        sharding_key=draft.sharding_key,
        delay_level=draft.delay_level,
        deliver_at=draft.deliver_at,
    )
    if as_json:
        print_json(receipt._asdict())
    elif draft.delay_level or receipt.recall_handle is not None:
        typer.echo(f"{receipt.msg_id} waits for its time: rocketpy job redeliver {store.path}")
    else:
        typer.echo(f"{receipt.msg_id} at {topic}/{receipt.queue_id}/{receipt.queue_offset}")


def _send_lines(store: Store, topic: str, draft: Draft, *, as_json: bool) -> None:
    send_lines(
        topic, lambda bodies: store.append(topic, draft.table(bodies)).count, as_json=as_json
    )


def send_lines(topic: str, send: Callable[[list[bytes]], int], *, as_json: bool) -> None:
    """Send the lines of stdin, some thousand at a time, and say how many they were."""
    count, lines = 0, _lines()
    with counting(topic) as report:
        while bodies := list(islice(lines, _LINES_AT_ONCE)):
            count += send(bodies)
            report(count)
    if as_json:
        print_json({"count": count})
    else:
        typer.echo(f"{count_text(count, 'message')} to {topic}")


def _lines() -> Iterator[bytes]:
    """Yield what stdin has, line by line, without the ends of lines."""
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n")
