"""Every error: one base, fields that are attributes, words that help, and pickling."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rocketpy.broker_core
from rocketpy.broker_core import errors
from rocketpy.broker_core.errors import RocketPyError

SAMPLES: dict[str, Any] = {
    "path": Path("store"),
    "holder_pid": 4711,
    "waited_s": 10.0,
    "action": "send",
    "reasons": ["one", "two"],
    "needed_bytes": 4096,
    "cause": "No space left on device",
    "offset": 88,
    "at": 88,
    "reason": "it is odd",
    "remedy": "look at it",
    "module": "opentelemetry",
    "name": "orders",
    "known": ["order", "payments"],
    "topic": "orders",
    "queue_id": 7,
    "queues": 4,
    "asked": 12,
    "held": (3, 9),
    "group": "billing",
    "msg_id": "7F",
    "what": "body",
    "column": "bodi",
    "value": 0,
    "sql": "region =",
    "owner": "host/4711",
    "kind": "job",
    "left_ms": 1500,
    "source": "level 3",
    "planned": (7,),
    "now": (9,),
    "member": "one",
    "writer": "query 1 topic orders",
    "number": 4,
    "last": 7,
    "host": "worker-3",
    "found": "no store",
    "header": "PullMessageRequestHeader",
    "field": "queueId",
    "server": "broker-a at 127.0.0.1:10911",
    "code": 16,
    "remark": "the topic is closed",
    "body": "a heartbeat",
    "address": "127.0.0.1:9876",
    "instead": "give a folder",
    "members": 2,
    "place": "reader.yml",
    "problem": "secretKey is missing there",
    "client": "10.0.0.1@4711#1",
    "client_id": "10.0.0.1@4711#1",
    "timeout_s": 3.0,
    "queue": "orders/broker-a/0",
    "thread": "rocketpy-client",
}
BASES = {"NameRefusedError", "RocketPyError", "StoreError", "UnknownNameError"}


def error_classes() -> Iterator[type[RocketPyError]]:
    for module in pkgutil.walk_packages(rocketpy.broker_core.__path__, "rocketpy.broker_core."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    todo: list[type[RocketPyError]] = [RocketPyError]
    while todo:
        found = todo.pop()
        todo += found.__subclasses__()
        is_ours = found.__module__.startswith("rocketpy.broker_core.")
        if is_ours and found.__name__ not in BASES:
            yield found


CLASSES = sorted(set(error_classes()), key=lambda found: found.__name__)


def make(kind: type[RocketPyError]) -> RocketPyError:
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    return kind(*(SAMPLES[name] for name in names))


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_pickling(kind: type[RocketPyError]) -> None:
    error = make(kind)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.args, str(again), vars(again)) == (error.args, str(error), vars(error))


@pytest.mark.parametrize("kind", CLASSES)
def test_the_fields_of_an_error_are_attributes(kind: type[RocketPyError]) -> None:
    error = make(kind)
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    assert [getattr(error, name) for name in names] == [SAMPLES[name] for name in names]


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_says_a_sentence(kind: type[RocketPyError]) -> None:
    text = str(make(kind))
    assert len(text.split()) >= 3
    assert "object at 0x" not in text


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_class_says_when_it_is_raised(kind: type[RocketPyError]) -> None:
    assert (kind.__doc__ or "").startswith("Is raised ")


def test_what_may_pass_by_itself_is_retriable() -> None:
    retriable = {kind.__name__ for kind in CLASSES if kind.retriable}
    assert {"StoreLockedError", "DiskFullError"} <= retriable
    assert "CorruptStoreError" not in retriable


def test_a_topic_that_is_not_there_names_the_nearest() -> None:
    error = errors.TopicNotFoundError("oders", ["orders", "payments"])
    assert str(error) == "there is no topic 'oders'; did you mean 'orders'?"


def test_a_topic_like_no_other_names_the_remedy() -> None:
    assert "create_topic()" in str(errors.TopicNotFoundError("zzz", ["orders"]))


def test_an_offset_out_of_range_names_the_range() -> None:
    error = errors.OffsetOutOfRangeError("t", 0, 3, (5, 9))
    assert str(error) == "offset 3 of 't' queue 0 is not there: the queue holds 5 to 9 (exclusive)"
