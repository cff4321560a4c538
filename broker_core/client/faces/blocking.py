"""The client that blocks: `rocketpy.connect(...)`. It runs the client of asyncio on a thread.

M1  Any thread may use it, any number at a time; a loop that runs in the caller does not matter.
M2  A forked child that uses it gets connections of its own. What the parent had in flight stays
    the parent's.
M3  Ctrl-C ends a wait at once. The message may have been stored or not; the client works on.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from rocketpy.broker_core.client.errors import ClientClosedError
from rocketpy.broker_core.client.faces import aio
from rocketpy.broker_core.client.faces.aio import AsyncClient
from rocketpy.broker_core.client.faces.arguments import Body, MessageLike
from rocketpy.broker_core.client.faces.consuming import BlockingConsuming
from rocketpy.broker_core.client.faces.process_loop import abandon, process_loop
from rocketpy.broker_core.client.parcels import COMPRESS_OVER_BYTES, MOST_BYTES, PRODUCER_GROUP
from rocketpy.broker_core.client.session import CLOSE_S
from rocketpy.broker_core.moments import Time

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from typing_extensions import Unpack

    from rocketpy.broker_core.client.consuming.received import ReceivedMessage
    from rocketpy.broker_core.client.credentials import Credentials
    from rocketpy.broker_core.client.faces.admin import BlockingAdmin
    from rocketpy.broker_core.client.faces.arguments import MessageOptions
    from rocketpy.broker_core.client.parcels import SendReceipt
    from rocketpy.broker_core.client.sending.chains import Selector
    from rocketpy.broker_core.client.sending.hooks import SendHook
    from rocketpy.broker_core.client.sending.transactions import AsyncTransaction, Checker
    from rocketpy.broker_core.net.client_tls import ClientTls

_Result = TypeVar("_Result")
_MARGIN_S = 2.0  # for what the loop has to do besides


class _Engine:
    """The client of asyncio of one process; a forked child makes another."""

    def __init__(self, make: Callable[[], AsyncClient]) -> None:
        self._make, self._pid = make, os.getpid()
        self._client = make()
        self.is_closed = False

    def client(self) -> AsyncClient:
        """Return the client of this process."""
        if self._pid != os.getpid():
            abandon(self._client)
            self._pid, self._client = os.getpid(), self._make()
        return self._client

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Close it, and wait for that, unless this runs in the loop: garbage is found anywhere."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._pid == os.getpid() and self._client.is_open:
            loop = process_loop()
            closing = self._client.close(timeout_s=timeout_s)
            if loop.is_current:
                loop.begin(closing)
            else:
                loop.run(closing, timeout_s=4 * timeout_s + _MARGIN_S)


class BlockingClient(BlockingConsuming):
    """A client of one cluster that blocks. Any thread may use it; close it, or use `with`."""

    def __init__(self, make: Callable[[], AsyncClient]) -> None:
        """Open nothing yet; programs call connect()."""
        self._engine = _Engine(make)
        # At the end of the program, too: brokers hear that we leave.
        weakref.finalize(self, self._engine.close, 1.0)

    def __repr__(self) -> str:
        return repr(self._engine.client())

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, work: Callable[[AsyncClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Return what a coroutine of the client of asyncio returns, or raise what it raises."""
        client = self._client()

        async def in_loop() -> _Result:
            return await work(client)

        return process_loop().run(in_loop(), timeout_s=None)

    def _client(self) -> AsyncClient:
        if self._engine.is_closed:
            raise ClientClosedError(repr(self))
        return self._engine.client()

    # --- sending ----------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        body: Body,
        *,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        flag: int = 0,
        delay_level: int = 0,
        deliver_at: Time | None = None,
        delay_s: float | None = None,
        select: Selector | None = None,
    ) -> SendReceipt:
        """Send one message; on return a broker has it.

        Messages of one `sharding_key` go to one queue, in order. `select` chooses among the queues
        that the topic has: a quick function. A message with a `delay_level` (from 1 on), a time to
        `deliver_at` or a `delay_s` waits in the broker until it is due.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was sent.
            NoBrokerError: no broker takes messages for the topic.
            ServerUnreachableError: no answer came; it may be stored nevertheless.
            ServerRefusedError: the broker did not take it.
        """
        sending = self._client().send(
            topic,
            body,
            tags=tags,
            keys=keys,
            properties=properties,
            queue_id=queue_id,
            sharding_key=sharding_key,
            flag=flag,
            delay_level=delay_level,
            deliver_at=deliver_at,
            delay_s=delay_s,
            select=select,
        )
        return process_loop().run(sending, timeout_s=None)  # as run() does, for less

    def send_many(self, topic: str, messages: Sequence[MessageLike]) -> list[SendReceipt]:
        """Send messages in batches: bodies, or dicts of the arguments of send().

        The receipts are in the order of the messages. Messages of one sharding key or queue are
        stored in their order, unless some of them had to be sent again.

        Raises:
            as send(): some of them may be stored.
        """
        return process_loop().run(self._client().send_many(topic, messages), timeout_s=None)

    def send_oneway(
        self,
        topic: str,
        body: Body,
        *,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> None:
        """Send one message, and wait for no answer: nobody knows whether it was stored."""
        self.run(lambda client: client.send_oneway(topic, body, select=select, **options))

    def send_async(
        self,
        topic: str,
        body: Body,
        *,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> Future[SendReceipt]:
        """Begin to send one message; the future gets its receipt, or what send() raises.

        Waits until there is room for it among the messages in flight. Functions that are added to
        the future (add_done_callback) run in the client's thread: they must not wait.
        """

        async def begin(client: AsyncClient) -> Future[SendReceipt]:
            return _watched(await client.send_async(topic, body, select=select, **options))

        return self.run(begin)

    def transaction(
        self,
        topic: str,
        body: Body,
        *,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> Transaction:
        """Return a transaction for `with`: the message is delivered if the block succeeds.

        If the broker does not hear of the end, it asks the `checker` that connect() was given.
        """

        async def make(client: AsyncClient) -> AsyncTransaction:
            return client.transaction(topic, body, select=select, **options)

        return Transaction(self, self.run(make))

    def request(
        self,
        topic: str,
        body: Body,
        *,
        timeout_s: float = 3.0,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> ReceivedMessage:
        """Send a request, and return the reply that whoever consumes it sends.

        Raises:
            NoReplyError: none came in time.
            as send(): the request cannot be sent.
        """
        return self.run(
            lambda client: client.request(
                topic, body, timeout_s=timeout_s, select=select, **options
            )
        )

    def reply(self, request: ReceivedMessage, body: Body) -> SendReceipt:
        """Send the reply to a request that was consumed.

        Raises:
            MessageRefusedError: it is no request, so that nobody waits for a reply.
            ServerRefusedError: who asked is not there any more.
        """
        return self.run(lambda client: client.reply(request, body))

    @property
    def admin(self) -> BlockingAdmin:
        """What administers the cluster: `topics`, `groups`, `offsets`, `messages`, `brokers`."""
        from rocketpy.broker_core.client.faces.admin import BlockingAdmin  # few need it

        return BlockingAdmin(self.run)

    # --- the end ----------------------------------------------------------------------------------

    def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Leave the cluster. Closing twice is fine.

        Consumers are closed first; of pull consumers, what they gave last is not committed. Then
        sends that are in flight are waited for, for `timeout_s`; what is left fails.
        """
        self._engine.close(timeout_s)


class Transaction:
    """A transaction as a block: entering stores the half message, leaving commits it.

    A block that raises is rolled back. In the block commit(), rollback() and leave_open() say
    something else; the first of them counts.
    """

    def __init__(self, client: BlockingClient, transaction: AsyncTransaction) -> None:
        self._client, self._transaction = client, transaction

    def __repr__(self) -> str:
        return repr(self._transaction)

    @property
    def receipt(self) -> SendReceipt:
        """The receipt of the half message; its `uniq_key` is what a checker gets, too."""
        return self._transaction.receipt

    @property
    def is_settled(self) -> bool:
        """Whether the broker said that it did as it was told."""
        return self._transaction.is_settled

    def commit(self) -> None:
        """Have the message delivered."""
        self._client.run(lambda _: self._transaction.commit())

    def rollback(self) -> None:
        """Have the message forgotten."""
        self._client.run(lambda _: self._transaction.rollback())

    def leave_open(self) -> None:
        """Leave it open: the broker asks the checker later."""
        self._client.run(lambda _: self._transaction.leave_open())

    def __enter__(self) -> Transaction:
        self._client.run(lambda _: self._transaction.begin())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.run(lambda _: self._transaction.end(error is None))


def connect(
    address: str,
    *,
    group: str = PRODUCER_GROUP,
    timeout_s: float = 3.0,
    tries: int = 3,
    compress_over: int | None = COMPRESS_OVER_BYTES,
    most_bytes: int = MOST_BYTES,
    most_in_flight: int = 4_096,
    most_in_flight_bytes: int = 64 << 20,
    checker: Checker | None = None,
    hooks: Sequence[SendHook] = (),
    credentials: Credentials | None = None,
    tls: ClientTls | bool | None = None,
    namespace: str = "",
    trace: bool | str = False,
    telemetry: bool | TracerProvider = False,
) -> BlockingClient:
    """Return a client of a cluster, by its name servers: `ns1:9876;ns2:9876`. Opens nothing yet.

    `group` is the producer group. A message is tried `tries` times, each for `timeout_s`; bodies of
    `compress_over` bytes and more are compressed. Of messages without an answer there are never
    more than `most_in_flight`, and `most_in_flight_bytes`: who sends more waits. `checker` says of
    a half message whether its transaction was done: True, False, or None if that is not known; it
    is called in a thread. `hooks` see each try. A protected cluster knows the client by its
    `credentials`, by default those of the environment; with `tls` all is encrypted: True, or a
    ClientTls that says whom to trust; by default what the environment says. With a `namespace` all
    topics and groups are those of it: `orders` is `namespace%orders` to brokers. With `trace` it
    tells the trace topic what it sends and consumes: RocketMQ's, or one by name; with `telemetry`
    OpenTelemetry, by the tracer provider of the process or the one given.

    Raises:
        ClusterAddressError: it is no address.
        TopicNameError: no topic to trace to can have that name.
        TelemetryMissingError: OpenTelemetry is not installed.
        GroupNameError, MessageRefusedError: no group, or no namespace can have that name.
        CredentialsError, TlsError: what the environment or a file says cannot be used.
    """
    return BlockingClient(
        lambda: aio.connect(
            address,
            group=group,
            timeout_s=timeout_s,
            tries=tries,
            compress_over=compress_over,
            most_bytes=most_bytes,
            most_in_flight=most_in_flight,
            most_in_flight_bytes=most_in_flight_bytes,
            checker=checker,
            hooks=hooks,
            credentials=credentials,
            tls=tls,
            namespace=namespace,
            trace=trace,
            telemetry=telemetry,
        )
    )


def _watched(task: Any) -> Future[SendReceipt]:
    """Return a future for other threads that ends with a task of the loop."""
    future: Future[SendReceipt] = Future()
    future.set_running_or_notify_cancel()

    def copy(done: Any) -> None:
        if done.cancelled():
            future.set_exception(ClientClosedError("the client"))
        elif (error := done.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())

    task.add_done_callback(copy)
    return future
