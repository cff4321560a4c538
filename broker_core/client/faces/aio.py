"""The client of asyncio: `rocketpy.aio.connect(...)`.

A client belongs to the loop in which it is first used. It opens nothing before that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.client.errors import ClientClosedError, OtherLoopError
from rocketpy.broker_core.client.faces.aio_consuming import AsyncConsuming
from rocketpy.broker_core.client.faces.arguments import (
    Body,
    MessageLike,
    message_draft,
    message_drafts,
)
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.client.parcels import (
    COMPRESS_OVER_BYTES,
    MOST_BYTES,
    PRODUCER_GROUP,
    SendReceipt,
)
from rocketpy.broker_core.client.sending.chains import Selector
from rocketpy.broker_core.client.sending.hooks import SendHook
from rocketpy.broker_core.client.sending.producer import AsyncProducer, ProducerSettings
from rocketpy.broker_core.client.sending.requests import Requests
from rocketpy.broker_core.client.sending.transactions import (
    AsyncTransaction,
    Checker,
    ProducerTransactions,
)
from rocketpy.broker_core.client.session import CLOSE_S, Session
from rocketpy.broker_core.metadata.names import check_group_name
from rocketpy.broker_core.moments import Time
from rocketpy.broker_core.net.client_tls import ClientTls, context_of

if TYPE_CHECKING:
    import ssl

    from opentelemetry.trace import TracerProvider
    from typing_extensions import Unpack

    from rocketpy.broker_core.client.cluster import Cluster
    from rocketpy.broker_core.client.consuming.received import ReceivedMessage
    from rocketpy.broker_core.client.faces.admin import AdminThread, AsyncAdmin
    from rocketpy.broker_core.client.faces.arguments import MessageOptions
    from rocketpy.broker_core.client.tracing.client_tracing import ClientTracing

_Subject = TypeVar("_Subject")
_Result = TypeVar("_Result")


class AsyncClient(AsyncConsuming):
    """A client of one cluster, for asyncio. Any number of tasks of one loop may use it."""

    def __init__(
        self,
        address: ClusterAddress,
        settings: ProducerSettings,
        *,
        checker: Checker | None = None,
        hooks: Sequence[SendHook] = (),
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        tracing: ClientTracing | None = None,
    ) -> None:
        """Open nothing yet; programs call connect()."""
        super().__init__(settings.names, tracing)
        self.address, self._settings = address, settings
        self._credentials, self._tls = credentials, tls
        self._checker, self._hooks = checker, hooks
        self._session: Session | None = None
        self._producer: AsyncProducer | None = None
        self._transactions: ProducerTransactions | None = None
        self._requests: Requests | None = None
        self._admin: AdminThread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<client of {self.address}, group {self._settings.group}>"

    async def __aenter__(self) -> AsyncClient:
        self.session  # noqa: B018  belongs to this loop from now on
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def session(self) -> Session:
        """The connections of this client; made on first use, in the running loop."""
        self._refuse_elsewhere()
        if self._session is None:
            self._session = Session(
                self.address,
                timeout_s=self._settings.timeout_s,
                credentials=self._credentials,
                tls=self._tls,
            )
        return self._session

    def _refuse_elsewhere(self) -> None:
        """Have it belong to the running loop, and be used in no other, nor after its end."""
        if self._is_closed:
            raise ClientClosedError(repr(self))
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise OtherLoopError(repr(self))

    @property
    def producer(self) -> AsyncProducer:
        """What sends; made on first use."""
        self._refuse_elsewhere()
        if self._producer is None:
            session, ended = self.session, None
            if self._tracing is None:
                self._producer = AsyncProducer(session, self._settings, hooks=self._hooks)
            else:
                self._producer, ended = self._tracing.producer(session, self._hooks)
            # Brokers may ask for the transactions of another client of the group.
            self._transactions = ProducerTransactions(self._producer, self._checker, ended=ended)
        return self._producer

    # --- sending ----------------------------------------------------------------------------------

    async def send(
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
        that the topic has: a quick function, called in the loop. A message with a `delay_level`
        (from 1 on), a time to `deliver_at` or a `delay_s` waits in the broker until it is due.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was sent.
            NoBrokerError: no broker takes messages for the topic.
            ServerUnreachableError: no answer came; it may be stored nevertheless.
            ServerRefusedError: the broker did not take it.
        """
        draft = message_draft(
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
        )
        return await self.producer.send(topic, draft, select=select)

    async def send_many(self, topic: str, messages: Sequence[MessageLike]) -> list[SendReceipt]:
        """Send messages in batches: bodies, or dicts of the arguments of send().

        The receipts are in the order of the messages. Messages of one sharding key or queue are
        stored in their order, unless some of them had to be sent again.

        Raises:
            as send(): some of them may be stored.
        """
        if isinstance(messages, (list, tuple)) and {*map(type, messages)} == {bytes}:
            return await self.producer.send_bodies(topic, messages[:])
        return await self.producer.send_many(topic, message_drafts(messages))

    async def send_oneway(
        self,
        topic: str,
        body: Body,
        *,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> None:
        """Send one message, and wait for no answer: nobody knows whether it was stored."""
        await self.producer.send_oneway(topic, message_draft(body, **options), select=select)

    async def send_async(
        self,
        topic: str,
        body: Body,
        *,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> asyncio.Future[SendReceipt]:
        """Begin to send one message; the future gets its receipt, or what send() raises.

        Returns as soon as there is room for it among the messages in flight.
        """
        return await self.producer.begin(topic, message_draft(body, **options), select=select)

    def transaction(
        self,
        topic: str,
        body: Body,
        *,
        select: Selector | None = None,
        **options: Unpack[MessageOptions],
    ) -> AsyncTransaction:
        """Return a transaction for `async with`: the message is delivered if the block succeeds.

        If the broker does not hear of the end, it asks the `checker` that connect() was given.
        """
        draft = message_draft(body, **options)
        self.producer  # noqa: B018  makes the transactions
        assert self._transactions is not None
        return AsyncTransaction(self._transactions, topic, draft, select)

    async def request(
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
        draft = message_draft(body, **options)
        return await self._replies.request(topic, draft, timeout_s=timeout_s, select=select)

    async def reply(self, request: ReceivedMessage, body: Body) -> SendReceipt:
        """Send the reply to a request that was consumed.

        Raises:
            MessageRefusedError: it is no request, so that nobody waits for a reply.
            ServerRefusedError: who asked is not there any more.
        """
        return await self._replies.reply(request, message_draft(body).body)

    @property
    def _replies(self) -> Requests:
        if self._requests is None:
            self._requests = Requests(self.producer)
        return self._requests

    @property
    def is_open(self) -> bool:
        """Whether it was used, so that there is something to close."""
        return self._session is not None or self._admin is not None

    # --- administering ----------------------------------------------------------------------------

    @property
    def admin(self) -> AsyncAdmin:
        """What administers the cluster: `topics`, `groups`, `offsets`, `messages`, `brokers`."""
        from rocketpy.broker_core.client.faces.admin import AsyncAdmin  # few need it

        return AsyncAdmin(self.administer)

    async def administer(
        self, kind: Callable[[Cluster, Namespace], _Subject], work: Callable[[_Subject], _Result]
    ) -> _Result:
        """Return what work with a class of client/admin/ returns, done in the thread for it."""
        self._refuse_elsewhere()
        if self._admin is None:
            from rocketpy.broker_core.client.cluster import Cluster
            from rocketpy.broker_core.client.faces.admin import AdminThread

            cluster = Cluster(
                self.address,
                timeout_s=self._settings.timeout_s,
                credentials=self._credentials,
                tls=self._tls,
            )
            self._admin = AdminThread(cluster, self._names)
        return await self._admin.call(kind, work)

    # --- the end ----------------------------------------------------------------------------------

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Leave the cluster. Closing twice is fine.

        Consumers are closed first; of pull consumers, what they gave last is not committed. Then
        sends that are in flight are waited for, for `timeout_s`; what is left fails.
        """
        closing = [] if self._admin is None else [self._admin.close(timeout_s)]
        await asyncio.gather(self._close_consumers(timeout_s), *closing)
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None and self._producer is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._producer.in_flight.emptied(), timeout_s)
        if session is not None and self._tracing is not None:
            await self._tracing.close(timeout_s)
        if self._transactions is not None:
            self._transactions.close()
        if session is not None:
            await session.close(timeout_s=timeout_s)


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
) -> AsyncClient:
    """Return a client of a cluster, by its name servers: `ns1:9876;ns2:9876`. Opens nothing yet.

    `group` is the producer group. A message is tried `tries` times, each for `timeout_s`; bodies of
    `compress_over` bytes and more are compressed. Of messages without an answer there are never
    more than `most_in_flight`, and `most_in_flight_bytes`: who sends more waits. `checker` says of
    a half message whether its transaction was done: True, False, or None if that is not known;
    plain functions are called in a thread. `hooks` see each try. A protected cluster knows the
    client by its `credentials`, by default those of the environment; with `tls` all is encrypted:
    True, or a ClientTls that says whom to trust; by default what the environment says. With a
    `namespace` all topics and groups are those of it: `orders` is `namespace%orders` to brokers.
    With `trace` it tells the trace topic what it sends and consumes: RocketMQ's, or one by name;
    with `telemetry` OpenTelemetry, by the tracer provider of the process or the one given.

    Raises:
        ClusterAddressError: it is no address.
        TopicNameError: no topic to trace to can have that name.
        TelemetryMissingError: OpenTelemetry is not installed.
        GroupNameError, MessageRefusedError: no group, or no namespace can have that name.
        CredentialsError, TlsError: what the environment or a file says cannot be used.
    """
    names = Namespace(namespace)
    check_group_name(names.wrap(group))
    settings = ProducerSettings(
        group=names.wrap(group),
        names=names,
        timeout_s=timeout_s,
        tries=tries,
        compress_over=compress_over,
        most_bytes=most_bytes,
        most_in_flight=most_in_flight,
        most_in_flight_bytes=most_in_flight_bytes,
    )
    return AsyncClient(
        ClusterAddress.of_name_servers(address),
        settings,
        checker=checker,
        hooks=hooks,
        credentials=credentials or Credentials.of_environment(),
        tls=context_of(tls),
        tracing=_tracing(settings, trace, telemetry) if trace or telemetry else None,
    )


def _tracing(
    settings: ProducerSettings, trace: bool | str, telemetry: bool | TracerProvider
) -> ClientTracing:
    from rocketpy.broker_core.client.tracing.client_tracing import tracing_of  # few trace

    return tracing_of(settings, trace, telemetry)
