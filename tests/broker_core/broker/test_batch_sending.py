"""Batches over a real connection: what is stored of them, alone and with others of their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.broker_core.broker.conftest import Asking, Serve, send_fields, stored

from rocketpy.broker_core.broker.incoming import Incoming, IncomingBatch
from rocketpy.broker_core.codec.batch_draft import BatchDraft
from rocketpy.broker_core.protocol.bodies.batches import join_batch
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import HeaderKind, RemotingCommand


def test_a_batch_is_stored_whole_and_without_properties_of_the_broker(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        body = join_batch([(0, b"a", b"TAGS\x01t\x02"), (7, b"", b""), (0, b"c", b"K\x01v")])
        fields = {**send_fields("orders"), "m": "true"}
        answer = await asking.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)
        messages = stored(asking, "orders")
        assert answer.fields["msgId"] == ",".join(message.msg_id for message in messages)
        assert [message.stored_body for message in messages] == [b"a", b"", b"c"]
        assert [message.flag for message in messages] == [0, 7, 0]
        assert [message.properties for message in messages] == [{"TAGS": "t"}, {}, {"K": "v"}]

    serve(scenario)


def test_a_damaged_batch_stores_nothing(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        body = join_batch([(0, b"a", b""), (0, b"b", b"")])[:-1]
        answer = await asking.ask(RequestCode.SEND_BATCH_MESSAGE, send_fields("orders"), body)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert stored(asking, "orders") == []

    serve(scenario)


def test_answers_to_a_batch_say_the_same_in_both_kinds_of_header(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        fields = {name: str(value) for name, value in send_fields("orders", e=2, m="true").items()}
        body = join_batch([(0, b"a", b""), (0, b"b", b"")])
        answers = [
            await asking._caller.ask(
                asking.address,
                RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields, body, kind=kind),
            )
            for kind in HeaderKind
        ]
        ids = [message.msg_id for message in stored(asking, "orders", 2)]
        for answer, kind, first in zip(answers, HeaderKind, (0, 2), strict=True):
            assert (answer.kind, answer.code) == (kind, 0)
            where = {"queueId": "2", "queueOffset": str(first)}
            where |= {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
            assert answer.fields == {"msgId": ",".join(ids[first : first + 2]), **where}

    serve(scenario)


@pytest.fixture
def drafted_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were drafted together, each time."""
    found: list[int] = []
    admit = Incoming.admit_batches

    def count(
        incoming: Incoming, batches: Sequence[IncomingBatch]
    ) -> list[list[BatchDraft] | Exception]:
        found.append(len(batches))
        return admit(incoming, batches)

    monkeypatch.setattr(Incoming, "admit_batches", count)
    return found


def test_batches_of_one_turn_get_their_own_offsets_and_ids(
    serve: Serve, drafted_together: list[int]
) -> None:
    async def scenario(asking: Asking) -> None:
        for topic in ("orders", "bills"):
            await asking.send(topic, b"makes the topic")

        async def send(topic: str, queue_id: int, bodies: list[bytes]) -> tuple[str, int, int, str]:
            fields = send_fields(topic, e=queue_id, m="true")
            body = join_batch([(0, each, b"K\x01v\x02") for each in bodies])
            answer = (await asking.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)).fields
            return topic, int(answer["queueId"]), int(answer["queueOffset"]), answer["msgId"]

        sent = [("orders", 1, [b"a", b"b"]), ("bills", 1, [b"c"])]
        sent += [("orders", 1, [b"d" * 500, b"e"]), ("orders", 0, [b"f"]), ("orders", 1, [b"g"])]
        answers = await asyncio.gather(*(send(*each) for each in sent))
        assert drafted_together == [len(sent)]
        assert [answer[:3] for answer in answers] == [
            *(("orders", 1, 0), ("bills", 1, 0), ("orders", 1, 2)),
            *(("orders", 0, 1), ("orders", 1, 4)),
        ]
        for (topic, queue_id, first, ids), (_, _, bodies) in zip(answers, sent, strict=True):
            messages = stored(asking, topic, queue_id)[first : first + len(bodies)]
            assert [message.stored_body for message in messages] == bodies
            assert ids == ",".join(message.msg_id for message in messages)

    serve(scenario)


def test_a_bad_batch_is_refused_and_others_of_its_turn_are_stored_in_their_order(
    serve: Serve, drafted_together: list[int]
) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"makes the topic")
        good = join_batch([(0, b"a", b""), (0, b"b", b"")])
        too_long = join_batch([(0, b"c", b""), (0, b"d" * 2000, b"")])
        fields, code = send_fields("orders", m="true"), RequestCode.SEND_BATCH_MESSAGE
        answers = await asyncio.gather(
            asking.send("orders", b"1"),
            *(asking.ask(code, fields, body) for body in (good, good[:-1], b"", too_long, good)),
            asking.send("orders", b"2"),
        )
        assert drafted_together == [5, 1, 1, 1, 1, 1]
        illegal, error = ResponseCode.MESSAGE_ILLEGAL, ResponseCode.SYSTEM_ERROR
        assert [answer.code for answer in answers] == [0, 0, error, illegal, illegal, 0, 0]
        remarks = [answer.remark or "" for answer in answers]
        assert "a message of 23 bytes at 23, in 45" in remarks[2]
        assert "has no messages" in remarks[3]
        assert "the limit is 1000" in remarks[4]
        offsets = [answer.fields.get("queueOffset") for answer in answers]
        assert offsets == ["1", "2", None, None, None, "4", "6"]
        bodies = [message.stored_body for message in stored(asking, "orders")[1:]]
        assert bodies == [b"1", b"a", b"b", b"a", b"b", b"2"]

    serve(scenario, maxMessageSize="1000")


def test_a_turn_of_nothing_but_bad_batches_leaves_the_broker_ready(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"makes the topic")
        fields, code = send_fields("orders", m="true"), RequestCode.SEND_BATCH_MESSAGE
        answers = await asyncio.gather(*(asking.ask(code, fields, b"xx") for _ in range(3)))
        assert [answer.code for answer in answers] == [ResponseCode.SYSTEM_ERROR] * 3
        await asyncio.wait_for(asking.broker.appender.drained(), 5)
        assert (await asking.send("orders", b"x")).code == 0

    serve(scenario)
