"""`rocketpy send` and `rocketpy tail` on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import typer

from rocketpy.broker_core.cli.connecting import connected
from rocketpy.broker_core.cli.sending import Draft, send_lines
from rocketpy.broker_core.cli.tailing import COLUMNS, TailOutput
from rocketpy.broker_core.cli.terminal import print_json
from rocketpy.broker_core.cli.wanted import Wanted
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulled import Pulled, PullFilter
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import MessageNotFoundError
from rocketpy.broker_core.message import parse_offset_id
from rocketpy.broker_core.message_queue import MessageQueue

_PLACE = ("broker", "queue_id", "queue_offset")
_SHOWN = ("broker", *COLUMNS)
_ORDER = [("store_timestamp", "ascending"), ("broker", "ascending"),
          ("commit_log_offset", "ascending")]  # fmt: skip


# --- send -----------------------------------------------------------------------------------------


def send(
    address: ClusterAddress, topic: str, body: str | None, draft: Draft, *, as_json: bool
) -> None:
    """Send a message, or the lines of stdin."""
    with connected(address) as cluster:
        producer = Producer(cluster)
        if body is None:
            cluster.route(topic)  # before the first line is waited for
            send_lines(
                topic,
                lambda bodies: len(producer.send_many(topic, (_draft(draft, b) for b in bodies))),
                as_json=as_json,
            )
        else:
            _say(producer.send(topic, _draft(draft, body.encode())), draft, as_json=as_json)


def _draft(draft: Draft, body: bytes) -> MessageDraft:
    return MessageDraft(
        body=body,
        tags=draft.tags,
        keys=draft.keys,
        properties=draft.properties,
        queue_id=draft.queue_id,
        sharding_key=draft.sharding_key,
        delay_level=draft.delay_level,
        deliver_at_ms=draft.deliver_at,
    )


def _say(receipt: SendReceipt, draft: Draft, *, as_json: bool) -> None:
    queue = receipt.queue
    if as_json:
        said = {
            "msg_id": receipt.msg_id,
            "broker": queue.broker,
            "queue_id": queue.queue_id,
            "queue_offset": receipt.queue_offset,
            "physical_offset": _physical_offset(receipt.msg_id),
            "stored_ms": None,
            "recall_handle": receipt.recall_handle,
            "uniq_key": receipt.uniq_key,
            "status": receipt.status,
        }
        return print_json(said)
    doubt = "" if receipt.status == "SEND_OK" else f" ({receipt.status})"
    if draft.delay_level or draft.deliver_at is not None:
        return typer.echo(f"{receipt.msg_id} waits for its time on {queue.broker}{doubt}")
    return typer.echo(f"{receipt.msg_id} at {queue}/{receipt.queue_offset}{doubt}")


def _physical_offset(msg_id: str) -> int | None:
    try:
        return parse_offset_id(msg_id)[1]
    except MessageNotFoundError:
        return None


# --- tail -----------------------------------------------------------------------------------------


def tail(
    address: ClusterAddress,
    topic: str,
    wanted: Wanted,
    output: TailOutput,
    *,
    lines: int,
    follow: bool,
) -> None:
    """Print the last messages by store time; then, if wished, each new one until interrupted."""
    with connected(address) as cluster:
        reading = _ClusterTail(cluster, topic, wanted)
        route = cluster.route(topic, fresh=True)
        output.shows_brokers = len(route.broker_names) > 1
        ranges = ClusterOffsets(cluster).ranges(route.readable())
        output.print(reading.last(lines, ranges))
        if follow:
            ends = {queue: end for queue, (_, end) in ranges.items()}
            with output.counting(topic) as report:
                for pulled in reading.puller.follow(ends, grows=True):
                    found = reading.shown(pulled)
                    if found.num_rows:
                        output.print(found)
                    report(found.num_rows)


@dataclass(frozen=True, slots=True)
class _ClusterTail:
    """The messages of a topic that are wanted, oldest first."""

    cluster: Cluster
    topic: str
    wanted: Wanted

    @property
    def puller(self) -> Puller:
        """What reads; the broker leaves out what tags or SQL leave out."""
        sql = self.wanted.sql.text if self.wanted.sql is not None else None
        return Puller(self.cluster, wanted=PullFilter.of(self.wanted.tags, sql))

    def last(self, lines: int, ranges: dict[MessageQueue, tuple[int, int]]) -> pa.Table:
        """Return the newest; with a filter, from the index or from further and further back."""
        if self.wanted.key is not None:
            found = self.shown(self.puller.by_key(self.topic, self.wanted.key), ranges)
            return found.slice(max(found.num_rows - lines, 0))
        reach = lines
        while True:
            starts = {queue: max(first, end - reach) for queue, (first, end) in ranges.items()}
            found = self.shown(
                pulled
                for queue, (_, end) in ranges.items()
                for pulled in self.puller.read(queue, starts[queue], end)
            )
            is_all = all(starts[queue] == first for queue, (first, _) in ranges.items())
            if found.num_rows >= lines or is_all:
                return found.slice(max(found.num_rows - lines, 0))
            reach *= 8

    def shown(
        self,
        pulled: Iterable[Pulled],
        before: Mapping[MessageQueue, tuple[int, int]] | None = None,
    ) -> pa.Table:
        """Return those messages that are wanted, up to the ends of ranges if some are given."""
        wanted = [*_SHOWN, *(name for name in self.wanted.columns if name not in _SHOWN)]
        rows = [
            self.wanted.filter(batch).select(list(_SHOWN))
            for batch in record_batches(pulled, select(wanted))
        ]
        table = pa.Table.from_batches(rows, select(_SHOWN)).sort_by(_ORDER)
        if before is not None:  # the rest is followed
            places = zip(*(table[name].to_pylist() for name in _PLACE), strict=True)
            table = table.filter(
                pa.array(
                    [
                        at < before.get(MessageQueue(self.topic, broker, queue_id), (0, 0))[1]
                        for broker, queue_id, at in places
                    ],
                    pa.bool_(),
                )
            )
        return table
