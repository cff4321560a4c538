"""Queues that are read on from another offset while handlers run, and locks that ran out."""

from __future__ import annotations

import asyncio

from tests.broker_core.client.consuming.consumers import (
    GROUP,
    TOPIC,
    committed,
    listening,
    make_topic,
    send,
    until,
)

from rocketpy.broker_core.client.consuming.push import PushConsumer
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.reading import LOCK_LIFE_S, QueuePuller
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.local import LocalBroker, local_broker


class OneAtATime:
    """A handler that waits, and counts how many of its calls run beside each other."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.got: list[str] = []
        self.running = self.most = 0

    async def __call__(self, message: ReceivedMessage) -> None:
        self.got.append(message.body.decode())
        self.running += 1
        self.most = max(self.most, self.running)
        await self.go_on.wait()
        self.running -= 1


def reader_of(consumer: PushConsumer) -> QueuePuller:
    (reader,) = (
        each for queue, each in consumer._member.held.readers.items() if queue.topic == TOPIC
    )
    return reader


def test_in_order_nothing_is_handed_out_beside_a_message_of_before_a_reset() -> None:
    async def scenario(servers: LocalBroker) -> OneAtATime:
        handler = OneAtATime()
        async with listening(servers, handler, ordered=True) as consumer:
            await until(lambda: handler.got)
            await consumer.reset({reader_of(consumer).queue: 1})
            await until(lambda: len(reader_of(consumer).process) == 2)  # pulled again
            assert handler.got == ["0"]
            handler.go_on.set()
            await until(lambda: len(handler.got) == 3)
        return handler

    with local_broker() as servers:
        make_topic(servers, queues=1)
        send(servers, "012")
        handler = asyncio.run(scenario(servers))
    assert (handler.got, handler.most) == (["0", "1", "2"], 1)


def test_a_queue_whose_lock_ran_out_is_read_on_where_another_has_left_it() -> None:
    """As after a process was stopped for a while: what it pulled before may be done by now."""

    async def scenario(servers: LocalBroker) -> OneAtATime:
        handler = OneAtATime()
        async with listening(servers, handler, ordered=True) as consumer:
            await until(lambda: handler.got)
            reader = reader_of(consumer)
            await until(lambda: len(reader.process) == 5)
            async with Session(servers.namesrv_addr) as another:
                await QueueCalls(another).commit(GROUP, reader.queue, 4)
            assert reader.locked_s is not None
            reader.locked_s -= LOCK_LIFE_S
            await consumer._member.held.renew_locks()
            handler.go_on.set()
            await until(lambda: len(handler.got) == 2)
        return handler

    with local_broker() as servers:
        make_topic(servers, queues=1)
        send(servers, "01234")
        handler = asyncio.run(scenario(servers))
        assert committed(servers) == 5
    assert (handler.got, handler.most) == (["0", "4"], 1)
