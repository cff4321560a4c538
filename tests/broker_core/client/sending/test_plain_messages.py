"""Messages that say nothing but their bodies, written by columns."""

from __future__ import annotations

import pytest

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.drafts import WrittenMessage, batch_body, cut, plain_draft
from rocketpy.broker_core.client.plain_messages import PlainMessages, plain_batches
from rocketpy.broker_core.client.sending.hooks import SendTry
from rocketpy.broker_core.local import LocalBroker

BODIES = [b"x" * size for size in (1, 128, 128, 3, 5_000, 7)]


def test_they_are_what_each_would_be_alone() -> None:
    (messages,) = plain_batches(BODIES, 1 << 20)
    assert len(messages) == len(BODIES) == len({*messages.uniq_keys})
    for body, key, message in zip(BODIES, messages.uniq_keys, messages, strict=True):
        assert message == WrittenMessage.of(plain_draft(body), 1 << 20, key)
    assert messages.batch_body() == batch_body([*messages])
    assert messages.size_bytes == len(messages.batch_body())
    assert [*messages[1:3]] == [*messages][1:3]


@pytest.mark.parametrize("most_bytes", [1, 65, 191, 192, 193, 400, 5_064, 5_500, 1 << 20])
def test_they_are_cut_as_others_are(most_bytes: int) -> None:
    batches = [*plain_batches(BODIES, most_bytes)]
    assert all(isinstance(batch, PlainMessages) for batch in batches)
    others = WrittenMessage.of_all([*map(plain_draft, BODIES)], 1 << 20)
    sizes = [len(batch) for batch in cut(others, most_bytes)]
    assert [len(batch) for batch in batches] == sizes
    assert [body for batch in batches for body in batch.bodies] == BODIES


class Seen:
    """A hook that keeps what it saw."""

    def __init__(self) -> None:
        self.ended: list[SendTry] = []

    def before(self, sending: SendTry) -> None:
        pass

    def after(self, sending: SendTry) -> None:
        self.ended.append(sending)


def test_bodies_are_sent_in_one_batch_with_receipts_in_their_order(fresh: LocalBroker) -> None:
    seen = Seen()
    bodies = [b"%d" % number for number in range(100)]
    with rocketpy.connect(fresh.namesrv_addr, hooks=[seen]) as mq:
        receipts = mq.send_many("t", bodies)
        found = mq.pull(receipts[0].queue, receipts[0].queue_offset, most=100).messages
    assert [each.queue_offset for each in receipts] == [*range(100)]
    assert len(found) >= 32  # what a pull gives at most, by default
    assert [each.body for each in found] == bodies[: len(found)]
    assert [each.msg_id for each in found] == [each.uniq_key for each in receipts[: len(found)]]
    (ended,) = seen.ended
    assert [draft.body for draft in ended.drafts] == bodies
    assert [*ended.uniq_keys] == [each.uniq_key for each in ended.receipts]


def test_a_batch_whose_answer_is_lost_is_sent_again_with_the_same_keys(fresh: LocalBroker) -> None:
    seen = Seen()
    first, second = (each.faults for each in fresh.brokers)
    with (
        rocketpy.connect(fresh.namesrv_addr, hooks=[seen], timeout_s=0.5) as mq,
        first.lose_answer("SEND_BATCH_MESSAGE"),
        second.lose_answer("SEND_BATCH_MESSAGE"),
    ):
        receipts = mq.send_many("t", [b"1", b"2"])
    *failed, done = seen.ended
    assert failed
    assert {type(each.error) for each in failed} == {errors.ServerUnreachableError}
    assert not done.error
    for each in seen.ended:
        assert [*each.uniq_keys] == [receipt.uniq_key for receipt in receipts]


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_an_empty_body_among_others_is_sent_too(fresh: LocalBroker, namespace: str) -> None:
    with rocketpy.connect(fresh.namesrv_addr, namespace=namespace) as mq:
        if namespace:
            mq.admin.topics.create("t")
        receipts = mq.send_many("t", [b"1", b"", b"3"])
        found = mq.pull(receipts[0].queue, receipts[0].queue_offset, most=3).messages
    assert [each.body for each in found] == [b"1", b"", b"3"]


def test_a_body_that_is_too_large_has_nothing_sent(fresh: LocalBroker) -> None:
    with (
        rocketpy.connect(fresh.namesrv_addr, most_bytes=10) as mq,
        fresh.faults.delay("SEND_BATCH_MESSAGE", 0) as sent,
    ):
        with pytest.raises(errors.MessageRefusedError, match="11 bytes are more than the 10"):
            mq.send_many("t", [b"small", b"x" * 11])
        with pytest.raises(errors.TopicNotFoundError):
            mq.send_many("nowhere", [b"small", b"small"])
    assert not sent.happened
