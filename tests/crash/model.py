"""What must hold of a store, found by reading it back: the judge of every crash test.

Independent of store.verify(), which is asked as well.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Set

from tests.crash.workload import TOPICS, Id, Sent, id_of, message

import rocketpy

_COLUMNS = ["topic", "queue_id", "queue_offset", "body", "tags", "keys"]


def check(
    store: rocketpy.Store,
    *,
    acknowledged: Set[Id] = frozenset(),
    tried: Set[Id] | None = None,
    key_samples: int = 40,
    verified: bool = True,
) -> set[Id]:
    """Hold a store against what was stored; return the messages it has.

    Acknowledged messages are there, no message is there that was not `tried`, each is there once,
    whole, in its queue, in the order of its writer; keys lead to them; log and queues agree.
    """
    problems = [str(problem) for problem in store.verify()] if verified else []
    assert not problems, "\n".join(problems[:5])
    found: dict[Id, Sent] = {}
    for topic in TOPICS:
        if topic in store.topics():
            _read_topic(store, topic, found)
    missing = sorted(acknowledged - found.keys())
    assert not missing, f"{len(missing)} acknowledged messages are gone, the first: {missing[0]}"
    if tried is not None:
        strange = sorted(found.keys() - tried)
        assert not strange, f"{len(strange)} messages come from nowhere, the first: {strange[0]}"
    in_log = [id_of(body) for body in store.scan(columns=["body"]).read_all()["body"].to_pylist()]
    assert sorted(in_log) == sorted(found), "the log and the queues hold different messages"
    _check_keys(store, found, key_samples)
    return set(found)


def _read_topic(store: rocketpy.Store, topic: str, found: dict[Id, Sent]) -> None:
    ranges = store.queues(topic)
    next_offset = {queue_id: first for queue_id, (first, _) in ranges.items()}
    last_number: dict[tuple[int, int], int] = defaultdict(lambda: -1)
    assert all(first == 0 for first in next_offset.values())
    for row in store.read(topic, columns=_COLUMNS).read_all().to_pylist():
        id = id_of(row["body"])
        expected = message(id, topic)
        got = Sent(id, row["topic"], row["queue_id"], row["body"], row["tags"], row["keys"])
        assert got == expected, f"{got} is not as it was sent: {expected}"
        assert id not in found, f"{id} is there twice"
        assert row["queue_offset"] == next_offset[row["queue_id"]], "queue offsets have a gap"
        next_offset[row["queue_id"]] += 1
        stream = row["queue_id"], id.writer
        assert id.number > last_number[stream], f"{id} is out of its writer's order"
        last_number[stream] = id.number
        found[id] = expected
    assert next_offset == {queue_id: end for queue_id, (_, end) in ranges.items()}


def _check_keys(store: rocketpy.Store, found: dict[Id, Sent], samples: int) -> None:
    with_keys = [sent for sent in found.values() if sent.keys]
    newest = sorted(with_keys, key=lambda sent: sent.id)[-samples // 4 :]
    some = random.Random(len(found)).sample(with_keys, min(samples, len(with_keys)))
    for sent in {sent.id: sent for sent in [*newest, *some]}.values():
        assert sent.keys is not None
        bodies = store.query(sent.topic, key=sent.keys, columns=["body"])["body"].to_pylist()
        assert bodies == [sent.body], f"{sent.id} is not found by its key"
