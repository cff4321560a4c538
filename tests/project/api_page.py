"""docs/api.md as the code would have it: `python -m tests.project.api_page` prints the page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, is_typeddict

import rocketpy
from rocketpy.broker_core.client.admin.brokers import BrokerState, RegisteredBroker
from rocketpy.broker_core.client.admin.groups import (
    ConnectedClient,
    Group,
    GroupConnections,
    TopicSubscription,
)
from rocketpy.broker_core.client.admin.offsets import GroupLag
from rocketpy.broker_core.client.admin.topics import Topic
from rocketpy.broker_core.client.consuming.opening import ConsumerOptions, ListenOptions
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.faces import admin
from rocketpy.broker_core.client.faces.arguments import MessageOptions
from rocketpy.broker_core.client.faces.blocking import Transaction
from rocketpy.broker_core.client.faces.consuming import Listener, PollingConsumer
from rocketpy.broker_core.client.groups import QueueProgress
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.client.resets import QueueMove
from rocketpy.broker_core.client.topics import QueueSpan
from rocketpy.broker_core.embedded import AppendResult, Receipt, SentBack
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.local.faults import Faults
from rocketpy.spark_jobs.backfill import BackfillOptions, BackfillReport
from rocketpy.spark_jobs.restore import RestoreOptions, RestoreReport

_WIDTH = 110
_HEAD = (
    "# The API of Python\n\n"
    "What `import rocketpy` gives; `help(rocketpy)` says it too. What is not here may change. The "
    "signatures are held to the code by a test.\n\n"
    "Times are milliseconds since 1970, a `datetime` with its zone, or a text of ISO 8601: one "
    "without a zone is UTC. `MessageData` is whatever Arrow can read (tables, batches and readers "
    "of pyarrow, frames of pandas and polars), or a list of dicts. `Offsets` is one offset for all "
    "queues, or a dict of queue ids and offsets. Type checkers know all of it. Every error is one "
    "of [`rocketpy.errors`](errors.md).\n"
)
_ADMIN = {
    "topics": admin.BlockingTopics,
    "groups": admin.BlockingGroups,
    "offsets": admin.BlockingOffsets,
    "messages": admin.BlockingMessages,
    "brokers": admin.BlockingBrokers,
}
_PUBLIC = (
    *("open", "local_spark", "register", "read", "count", "backfill", "restore", "send_back"),
    *("messages_behind", "local_broker", "connect"),
)


def rendered() -> str:
    """Return the whole page."""
    return "\n".join((_HEAD, *_sections())) + "\n"


def _sections() -> Iterator[str]:
    yield "## Functions\n"
    for name in _PUBLIC:
        yield _entry(f"rocketpy.{name}", getattr(rocketpy, name))
    yield "## A store\n"
    yield "What `rocketpy.open` returns. Use it in `with`, or `close()` it.\n"
    for name, method in _members(rocketpy.Store):
        yield _entry(f"store.{name}", method)
    yield "## A client of clusters\n"
    yield (
        "What `rocketpy.connect` returns: see [sending](client.md), [consuming](consuming.md) and "
        "[administering](administering.md). "
        "Use it in `with`, or `close()` it. What `rocketpy.aio.connect` returns has the same "
        "names; there they are coroutines.\n"
    )
    for name, member in _members(rocketpy.BlockingClient):
        if name != "run":
            yield _entry(f"mq.{name}", member)
    for subject in ("topics", "groups", "offsets", "messages", "brokers"):
        for name, member in _members(_ADMIN[subject]):
            yield _entry(f"mq.admin.{subject}.{name}", member)
    for name, member in _members(Transaction):
        yield _entry(f"transaction.{name}", member)
    for name, member in _members(Listener):
        yield _entry(f"listener.{name}", member)
    for name, member in _members(PollingConsumer):
        yield _entry(f"consumer.{name}", member)
    yield "## The way into a protected cluster\n"
    yield "What `connect` takes: see [access](access.md).\n"
    for taken in (rocketpy.Credentials, rocketpy.ClientTls):
        yield _entry(f"rocketpy.{taken.__name__}", taken)
        for name in ("of_file", "of_environment"):
            yield _entry(f"rocketpy.{taken.__name__}.{name}", getattr(taken, name))
    yield "## A broker for tests\n"
    yield "What `rocketpy.local_broker` returns: see [testing](testing.md). Use it in `with`.\n"
    for name, member in _members(LocalBroker):
        yield _entry(f"broker.{name}", member)
    for name, member in _members(Faults):
        if name != "attach":
            yield _entry(f"broker.faults.{name}", member)
    yield "## Settings and results\n"
    for kind in (
        *(rocketpy.StoreConfig, Receipt, AppendResult, SentBack, SendReceipt, MessageOptions),
        *(ListenOptions, ConsumerOptions),
        *(Topic, QueueSpan, Group, GroupConnections, ConnectedClient, TopicSubscription),
        *(GroupLag, QueueProgress, QueueMove, RegisteredBroker, BrokerState),
        *(ReceivedMessage, rocketpy.BufferLimits, rocketpy.Later, rocketpy.Sql),
        *(BackfillOptions, BackfillReport, RestoreOptions, RestoreReport),
    ):
        yield _entry(kind.__name__, kind)
    yield "## Listeners\n"
    for listener in (rocketpy.LagListener, rocketpy.Metrics, rocketpy.BatchSpans):
        yield _entry(f"rocketpy.{listener.__name__}", listener)
    yield "`rocketpy.analytics` is a module: see [analytics](analytics.md)."


def _members(kind: type) -> list[tuple[str, Any]]:
    return [each for each in inspect.getmembers(kind) if not each[0].startswith("_")]


def _entry(name: str, what: Any) -> str:
    sentence = (inspect.getdoc(what) or "").partition("\n")[0]
    return f"```text\n{_written(name, what)}\n```\n\n{sentence}\n"


def _written(name: str, what: Any) -> str:
    if isinstance(what, property):
        return f"{name} -> {inspect.signature(what.fget or repr).return_annotation}"
    if is_typeddict(what):
        parts = [f"{key}: {kind.__forward_arg__}" for key, kind in what.__annotations__.items()]
        return _call(name, parts, "")
    signature = inspect.signature(what)
    returned = signature.return_annotation
    arrow = f" -> {returned}" if isinstance(returned, str) and returned != "None" else ""
    return _call(name, [text for text in _parameters(signature) if text != "self"], arrow)


def _call(name: str, parts: list[str], arrow: str) -> str:
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= _WIDTH:
        return line
    inside = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inside}){arrow}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """Yield each parameter as it is written; functions as defaults are only called so."""
    is_keyword = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            yield "*"
        text = parameter.name if parameter.annotation is parameter.empty else (
            f"{parameter.name}: {parameter.annotation}"
        )  # fmt: skip
        if parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        if parameter.default is not parameter.empty:
            is_function = inspect.isfunction(parameter.default)
            text += f" = {'...' if is_function else repr(parameter.default)}"
        yield text


if __name__ == "__main__":
    print(rendered(), end="")
