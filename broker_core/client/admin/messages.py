"""Messages that are looked for: by key, by unique key, by offset id. Nothing is consumed by that.

A broker knows keys by a hash, in an index that follows the log within a second or so; it gives the
newest, and not more than it was told to (`maxTransferCountOnMessage…`, 64 by default).
"""

from __future__ import annotations

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.consuming.received import ReceivedMessage, read_stored
from rocketpy.broker_core.client.errors import AccessRefusedError, refusal
from rocketpy.broker_core.client.key_queries import ALWAYS_MS, records_with_key
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.errors import MessageNotFoundError
from rocketpy.broker_core.message import Host, parse_offset_id
from rocketpy.broker_core.metadata.names import TRACE_TOPIC
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.net.errors import split_address
from rocketpy.broker_core.property_names import UNIQ_KEY
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.message_trace import MessageTrace, TraceMessage, message_trace
from rocketpy.broker_core.protocol.requests.reading import ViewMessage

_MOST_TRACES = 1_000  # brokers have limits of their own


class MessageAdmin:
    """Looks for messages of one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, names: Namespace) -> None:
        self._cluster, self._names = cluster, names

    def by_key(
        self,
        topic: str,
        key: str,
        *,
        most: int = 64,
        since: Time | None = None,
        until: Time | None = None,
    ) -> list[ReceivedMessage]:
        """Return the messages of a topic that have a key, oldest first: of each broker the newest.

        With `since` and `until` only those stored from one time to the other.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        begin_ms = 0 if since is None else milliseconds("since", since)
        end_ms = ALWAYS_MS if until is None else milliseconds("until", until)
        found = self._found(topic, key, most=most, begin_ms=begin_ms, end_ms=end_ms)
        # The index knows times in seconds.
        return [
            message
            for message in found
            if key in message.keys and begin_ms <= message.store_timestamp_ms <= end_ms
        ]

    def by_unique_key(self, topic: str, uniq_key: str) -> list[ReceivedMessage]:
        """Return the messages that have the unique key of a receipt: all copies, oldest first.

        There are several if a message was sent again because an answer was lost.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        found = self._found(topic, uniq_key, is_unique=True)
        return [each for each in found if each.properties.get(UNIQ_KEY) == uniq_key]

    def trace(self, uniq_key: str, *, topic: str = TRACE_TOPIC) -> MessageTrace:
        """Return what clients have traced of the message with a unique key: who sent, who got it.

        A `topic` to which clients trace instead of RocketMQ's is the same for all namespaces.

        Raises:
            TopicNotFoundError: brokers have no trace topic, so that nothing is traced there.
        """
        answers = records_with_key(self._cluster, topic, uniq_key, most=_MOST_TRACES)
        found = [each for broker, records in answers for each in read_stored(records, broker)]
        return message_trace(
            uniq_key, [TraceMessage(each.body, _address(each.born_host)) for each in found]
        )

    def get(self, offset_msg_id: str) -> ReceivedMessage:
        """Return the message that an offset id names: `msg_id` of a receipt.

        Raises:
            MessageNotFoundError: it is no such id, or no broker of the cluster has the message.
        """
        host, physical_offset = parse_offset_id(offset_msg_id)
        broker, address = self._home_of((host.address, host.port), offset_msg_id)
        answer = self._cluster.ask(address, command_of(ViewMessage(offset=physical_offset)))
        error = None if answer.code == ResponseCode.SUCCESS else refusal(f"broker {broker}", answer)
        if isinstance(error, AccessRefusedError):
            raise error
        if error is not None:  # brokers have no code of its own for it
            reason = f"broker {broker} has none at {physical_offset}; it may be deleted by now"
            raise MessageNotFoundError(offset_msg_id, reason) from error
        (message,) = read_stored(answer.body, broker)
        return self._names.show_message(message)

    def _found(
        self,
        topic: str,
        key: str,
        *,
        most: int = 64,
        begin_ms: int = 0,
        end_ms: int = ALWAYS_MS,
        is_unique: bool = False,
    ) -> list[ReceivedMessage]:
        answers = records_with_key(
            self._cluster,
            self._names.wrap(topic),
            key,
            most=most,
            begin_ms=begin_ms,
            end_ms=end_ms,
            is_unique=is_unique,
        )
        messages = [each for broker, records in answers for each in read_stored(records, broker)]
        messages.sort(key=lambda each: (each.store_timestamp_ms, each.queue, each.queue_offset))
        return self._names.show_messages(messages)

    def _home_of(self, host: tuple[str, int], offset_msg_id: str) -> tuple[str, str]:
        """Return the broker at an address; nobody else is asked, whatever an id says."""
        for data in self._cluster.info(fresh=True).broker_addr_table.values():
            for address in data.broker_addrs.values():
                if split_address(address) == host:
                    return data.broker_name, address
        where = f"{host[0]}:{host[1]}"
        reason = f"{self._cluster.address} knows no broker at {where}, which its id names"
        raise MessageNotFoundError(offset_msg_id, reason)


def _address(host: Host | None) -> str:
    return "" if host is None else str(host)
