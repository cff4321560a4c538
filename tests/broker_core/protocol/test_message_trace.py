"""The trace of a message, put together from events of many clients."""

from __future__ import annotations

from rocketpy.broker_core.protocol.bodies.traces import (
    ConsumeBegunEvent,
    ConsumeEndedEvent,
    SentEvent,
    TraceEvent,
    TransactionEndedEvent,
    encode_event,
)
from rocketpy.broker_core.protocol.message_trace import (
    TracedDelivery,
    TracedSend,
    TracedTransaction,
    TraceMessage,
    message_trace,
)

SENT = SentEvent(
    5, None, "billing", "orders", "K1", None, None, "b:1", 4, 2, 0, "7F", is_success=True
)
ENDED = TransactionEndedEvent(
    9, None, "billing", "orders", "K1", None, None, "b:1", 2, "K1", "COMMIT_MESSAGE", False
)


def begun(request: str, at_ms: int, *, key: str = "K1", tries: int = 0) -> ConsumeBegunEvent:
    return ConsumeBegunEvent(at_ms, None, "readers", request, key, tries, None)


def ended(request: str, *, cost_ms: int, done: bool, key: str = "K1") -> ConsumeEndedEvent:
    return ConsumeEndedEvent(request, key, cost_ms, done, None, 0 if done else 4, 30, "readers")


def told(client: str, *events: TraceEvent) -> TraceMessage:
    return TraceMessage("".join(map(encode_event, events)).encode(), client)


def test_sends_and_deliveries_are_told_by_time_with_their_clients() -> None:
    found = message_trace(
        "K1",
        [
            told("c2", begun("R2", 20, tries=1), ended("R2", cost_ms=3, done=True)),
            told("c1", SENT, ENDED, begun("R1", 10)),
            told("c1", ended("R1", cost_ms=1, done=False)),
        ],
    )
    assert found.sends == (TracedSend("c1", SENT),)
    assert found.transactions == (TracedTransaction("c1", ENDED),)
    assert found.deliveries == (
        TracedDelivery("c1", "readers", 10, 0, 1, False, 4),
        TracedDelivery("c2", "readers", 20, 1, 3, True, 0),
    )
    assert found.deliveries[1].ended_ms == 23


def test_events_of_other_messages_are_left_out_though_they_share_a_call() -> None:
    other = told("c", SENT._replace(uniq_key="K2"), begun("R1", 1, key="K2"))
    end = told("c", ended("R1", cost_ms=1, done=True, key="K2"))
    assert not message_trace("K1", [other, end])


def test_a_batch_of_apaches_clients_tells_of_each_of_its_messages() -> None:
    batch = SENT._replace(uniq_key="K0,K1")
    assert message_trace("K1", [told("c", batch)]).sends == (TracedSend("c", batch),)


def test_what_is_told_twice_counts_once() -> None:
    message = told("c", SENT, begun("R", 1))
    found = message_trace("K1", [message, message])
    assert (len(found.sends), len(found.deliveries)) == (1, 1)


def test_a_delivery_without_an_end_is_open_and_one_without_a_beginning_is_told() -> None:
    found = message_trace(
        "K1", [told("c", begun("R1", 1)), told("d", ended("R2", cost_ms=4, done=True))]
    )
    assert found.deliveries == (
        TracedDelivery("c", "readers", 1, 0),
        TracedDelivery("d", "readers", 26, None, 4, True, 0),
    )


def test_messages_that_are_no_traces_are_counted() -> None:
    found = message_trace("K1", [TraceMessage(b"\xff", "c"), told("c", SENT)])
    assert (found.unreadable, len(found.sends)) == (1, 1)
