"""`rocketpy trace`: what clients have traced of a message."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text
from typer import Exit

from rocketpy.broker_core.cli.connecting import connected
from rocketpy.broker_core.cli.exits import FOUND
from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import (
    Screen,
    complain,
    plain_table,
    print_json,
    size_text,
    time_text,
)
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.protocol.message_trace import MessageTrace, TracedDelivery


def show(at: At, uniq_key: str, topic: str, *, as_json: bool) -> None:
    """Print the trace of a message."""
    found = _traced(at, uniq_key, topic)
    if as_json:
        print_json(_document(found))
    else:
        _print(found)
    if not found:
        complain(
            f"nothing in {topic} tells of {uniq_key}: its clients did not trace it, or not yet"
        )
        raise Exit(FOUND)


def _traced(at: At, uniq_key: str, topic: str) -> MessageTrace:
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.client.admin.messages import MessageAdmin
        from rocketpy.broker_core.client.namespaces import NO_NAMESPACE

        with connected(at) as cluster:
            return MessageAdmin(cluster, NO_NAMESPACE).trace(uniq_key, topic=topic)
    from rocketpy.broker_core.embedded import open as open_store

    with open_store(at, read_only=True) as store:
        return store.trace(uniq_key, topic=topic)


def _document(found: MessageTrace) -> dict[str, object]:
    return {
        "uniq_key": found.uniq_key,
        "sends": [{"client": each.client, **each.event._asdict()} for each in found.sends],
        "transactions": [
            {"client": each.client, **each.event._asdict()} for each in found.transactions
        ],
        "deliveries": [each._asdict() for each in found.deliveries],
    }


def _print(found: MessageTrace) -> None:
    screen = Screen()
    if found.sends:
        screen.print(_sends(found))
    for transaction in found.transactions:
        event = transaction.event
        asked = ", as its broker asked" if event.is_checked else ""
        screen.print(Text(f"{time_text(event.at_ms)} transaction: {event.state}{asked}"))
    if found.deliveries:
        screen.print(_deliveries(found))


def _sends(found: MessageTrace) -> Table:
    table = plain_table("sent", "by", "group", "topic", "body>", "took>", "result")
    for client, event in found.sends:
        result = f"stored at {event.store_host}" if event.is_success else "not stored, or not safe"
        table.add_row(
            *(time_text(event.at_ms), client, event.group or "?", event.topic or "?"),
            *(size_text(event.body_bytes), f"{event.cost_ms} ms", result),
        )
    return table


def _deliveries(found: MessageTrace) -> Table:
    table = plain_table("given", "to", "group", "try>", "took>", "result")
    for each in found.deliveries:
        begun = "?" if each.begun_ms is None else time_text(each.begun_ms)
        number = "?" if each.reconsume_times is None else str(each.reconsume_times + 1)
        took = "" if each.cost_ms is None else f"{each.cost_ms} ms"
        table.add_row(begun, each.client, each.group or "?", number, took, _result(each))
    return table


def _result(delivery: TracedDelivery) -> str:
    """Return in words how a delivery ended."""
    if delivery.is_success is None:
        return "no end was traced"
    return "done" if delivery.is_success else "failed"
