"""A store's folder, changed: opened for each change, whoever serves it meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocketpy.broker_core.client.resets import ResetTarget
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.errors import MessageNotFoundError, TopicNameError, TopicNotFoundError
from rocketpy.broker_core.metadata.names import (
    check_group_name,
    dead_letter_topic,
    is_reserved_topic,
)
from rocketpy.broker_core.retry.journal import replay_lock
from rocketpy.broker_core.retry.trail import DeadLetterPlace, TrailEntry, trail_of
from rocketpy.console.changes.changer import TopicShape
from rocketpy.console.changes.letters import replay
from rocketpy.console.changes.outcomes import ChangedMeanwhileError, ChangeOutcome
from rocketpy.console.changes.resets import PlannedMove, PlannedReset, require_same
from rocketpy.console.changes.sending import Letter, Sent


class FolderChanger:
    """Changes one store directory. What it did is durable on return."""

    def __init__(self, path: Path) -> None:
        """Open nothing yet."""
        self._path = path

    @contextmanager
    def _opened(self) -> Iterator[Store]:
        open_store(self._path, read_only=True).close()  # one that went is not to be made anew
        with open_store(self._path, flush="sync") as store:
            yield store

    def brokers(self) -> Sequence[str]:
        """Return the one that the store is of."""
        with open_store(self._path, read_only=True) as store:
            return [store.config.broker_name]

    # --- topics -----------------------------------------------------------------------------------

    def shapes(self, topic: str) -> Mapping[str, TopicShape]:
        """Return a topic as topics.json has it."""
        with open_store(self._path, read_only=True) as store:
            return _shapes(store, topic)

    def create_topic(
        self, topic: str, queues: int, brokers: Collection[str]
    ) -> tuple[ChangeOutcome, ...]:
        """Make a topic."""
        del brokers  # there is one
        if is_reserved_topic(topic):
            raise TopicNameError(topic, "it is RocketMQ's own")
        with self._opened() as store:
            broker = store.config.broker_name
            if topic in store.topics():
                return (
                    ChangeOutcome(broker, "it has this topic already; change it instead", False),
                )
            store.create_topic(topic, queues)
        return (ChangeOutcome(broker, "made"),)

    def change_topic(
        self, topic: str, shape: TopicShape, shown: Mapping[str, TopicShape]
    ) -> tuple[ChangeOutcome, ...]:
        """Change a topic."""
        with self._opened() as store:
            if _shapes(store, topic) != shown:
                raise ChangedMeanwhileError(f"topic {topic!r} was changed")
            store.update_topic(topic, **shape._asdict())
        return tuple(ChangeOutcome(broker, "changed") for broker in shown)

    def delete_topic(self, topic: str) -> tuple[ChangeOutcome, ...]:
        """Delete a topic."""
        with self._opened() as store:
            store.delete_topic(topic)
            return (ChangeOutcome(store.config.broker_name, "deleted"),)

    # --- messages ---------------------------------------------------------------------------------

    def send(self, topic: str, letter: Letter) -> Sent:
        """Store a message."""
        with self._opened() as store:
            receipt = store.send(
                topic,
                letter.body,
                tags=letter.tag,
                keys=letter.keys,
                properties=letter.properties,
                queue_id=letter.queue_id,
                sharding_key=letter.sharding_key,
                delay_level=letter.delay_level,
            )
            place = store.config.broker_name, receipt.queue_id, receipt.queue_offset
            return Sent(receipt.msg_id, *place, bool(letter.delay_level))

    # --- groups -----------------------------------------------------------------------------------

    def planned_reset(self, group: str, topic: str, to: str) -> PlannedReset:
        """Return where a group would read on."""
        check_group_name(group)
        with open_store(self._path, read_only=True) as store:
            return _planned(store, group, topic, to)

    def reset(self, plan: PlannedReset) -> tuple[ChangeOutcome, ...]:
        """Commit the offsets of a plan."""
        with self._opened() as store:
            now = _planned(store, plan.group, plan.topic, plan.to)
            require_same(plan, now)
            store.commit(plan.group, plan.topic, {each.queue_id: each.after for each in plan.moves})
        return plan.done()

    # --- dead letters -----------------------------------------------------------------------------

    def trail(self, group: str) -> Mapping[DeadLetterPlace, TrailEntry]:
        """Return what became of dead letters, as a file in the store has it."""
        check_group_name(group)
        return trail_of(self._path, group).read()

    def replay(
        self,
        group: str,
        letters: Sequence[tuple[DeadLetterPlace, str]],
        *,
        shown: frozenset[DeadLetterPlace],
        by: str,
    ) -> tuple[ChangeOutcome, ...]:
        """Store copies as `rocketpy job replay` does, which has to wait meanwhile."""
        check_group_name(group)
        with self._opened() as store, replay_lock(self._path, group):

            def send(place: DeadLetterPlace, to: str, run_id: str) -> str:
                _require_there(store, group, place)
                copy = store.replay(group, place.queue_id, place.queue_offset, to=to, run_id=run_id)
                return "/".join(map(str, copy))

            trail = trail_of(self._path, group)
            return replay(group, letters, shown=shown, trail=trail, send=send, by=by)


def _require_there(store: Store, group: str, place: DeadLetterPlace) -> None:
    """Raise unless the dead letter is where it was seen: its topic may have been made anew.

    Raises:
        MessageNotFoundError: another one is there.
    """
    at, topic = place.queue_offset, dead_letter_topic(group)
    rows = store.read(topic, columns=["msg_id"], queue_id=place.queue_id, start=at, end=at + 1)
    if rows.read_all()["msg_id"].to_pylist() != [place.msg_id]:
        raise MessageNotFoundError(place.msg_id, "it is not among the dead letters any more")


def _planned(store: Store, group: str, topic: str, to: str) -> PlannedReset:
    target, broker = ResetTarget.of(to), store.config.broker_name
    before = store.committed(group, topic)
    moves = []
    for queue_id, (first, end) in store.queues(topic).items():
        after = target.offset(first, end, before.get(queue_id))
        if after is None:
            assert target.time_ms is not None
            after = store.offset_by_time(topic, queue_id, target.time_ms)
        moves.append(PlannedMove(broker, queue_id, before.get(queue_id), after, first, end))
    return PlannedReset(group, topic, to, tuple(moves))


def _shapes(store: Store, topic: str) -> Mapping[str, TopicShape]:
    known = store.topics()
    if topic not in known:
        raise TopicNotFoundError(topic, known)
    found = known[topic]
    shape = TopicShape(found.write_queues, found.read_queues, found.perm)
    return {store.config.broker_name: shape}
