"""A client as bytes on a plain socket: what it sends can be anything."""

from __future__ import annotations

import itertools
import socket
import ssl
from collections.abc import Mapping
from types import TracebackType

from rocketpy.broker_core.codec.record import decode_record
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand, decode, encode
from rocketpy.broker_core.protocol.frames import FrameReader
from rocketpy.broker_core.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from rocketpy.broker_core.protocol.requests.reading import PullMessage
from rocketpy.broker_core.protocol.requests.sending import SendMessage

_WAITS, _HAS_SUBSCRIPTION = 2, 4  # bits of a pull's flag


class Wire:
    """One blocking connection."""

    def __init__(self, address: str, *, tls: bool = False, timeout_s: float = 30) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self._frames = FrameReader()
        self._answers: dict[int, RemotingCommand] = {}
        self._opaques = itertools.count(1)

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    # --- requests ---------------------------------------------------------------------------------

    def ask(self, code: int, fields: Mapping[str, str], body: bytes = b"", *, flag: int = 0) -> int:
        """Send a request; return its number."""
        opaque = next(self._opaques)
        command = RemotingCommand(code, fields, body, opaque=opaque, flag=flag)
        self.socket.sendall(encode(command))
        return opaque

    def ask_send(
        self, topic: str, body: bytes, *, queue_id: int = 0, flag: int = 0, properties: str = ""
    ) -> int:
        header = SendMessage(
            producer_group="p",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
            properties=properties,
        )
        return self.ask(RequestCode.SEND_MESSAGE_V2, header.encode(), body, flag=flag)

    def send(self, topic: str, body: bytes, *, queue_id: int = 0) -> RemotingCommand:
        return self.answer(self.ask_send(topic, body, queue_id=queue_id))

    def ask_pull(self, topic: str, queue_id: int, queue_offset: int, *, wait_ms: int = 0) -> int:
        header = PullMessage(
            consumer_group="group",
            topic=topic,
            queue_id=queue_id,
            queue_offset=queue_offset,
            max_msg_nums=1000,
            sys_flag=_HAS_SUBSCRIPTION | (_WAITS if wait_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=wait_ms,
            sub_version=0,
            subscription="*",
        )
        return self.ask(RequestCode.PULL_MESSAGE, header.encode())

    def bodies(self, topic: str, queue_id: int) -> list[bytes]:
        """Return the bodies of a queue's messages."""
        answer = self.answer(self.ask_pull(topic, queue_id, 0))
        if answer.code == ResponseCode.PULL_NOT_FOUND:
            return []
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        found, at, body = [], 0, bytes(answer.body)
        while at < len(body):
            size = int.from_bytes(body[at : at + 4], "big")
            found.append(decode_record(body[at : at + size]).stored_body)
            at += size
        return found

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        header = UpdateConsumerOffset(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=queue_offset
        )
        answer = self.answer(self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header.encode()))
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        header = QueryConsumerOffset(
            consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=False
        )
        answer = self.answer(self.ask(RequestCode.QUERY_CONSUMER_OFFSET, header.encode()))
        return int(answer.fields["offset"]) if answer.code == ResponseCode.SUCCESS else None

    def route(self, topic: str) -> str:
        """Return what a name server tells of a topic; empty if nothing."""
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        return bytes(self.answer(self.ask(code, {"topic": topic})).body).decode()

    def has_route(self, topic: str) -> bool:
        return bool(self.route(topic))

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, opaque: int) -> RemotingCommand:
        """Wait for the answer to a request."""
        while opaque not in self._answers:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionResetError("the connection was closed")
            for frame in self._frames.receive(data):
                command = decode(frame)
                if command.is_response:
                    self._answers[command.opaque] = command
        return self._answers.pop(opaque)

    def is_closed_by_the_other_side(self) -> bool:
        """Wait until the connection ends; False if bytes come instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
