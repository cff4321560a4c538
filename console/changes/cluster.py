"""A cluster, changed by the requests of its own tools: Apache's brokers, and ours."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace as with_changes
from pathlib import Path

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.groups import ClusterGroups, GroupOnlineError
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.client.resets import LATEST, GroupResets, ResetTarget
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import (
    MessageNotFoundError,
    MessageRefusedError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import check_group_name, dead_letter_topic
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings
from rocketpy.broker_core.retry.replay import sent_properties
from rocketpy.broker_core.retry.trail import DeadLetterPlace, ReplayTrail, TrailEntry
from rocketpy.console.changes.changer import TopicShape
from rocketpy.console.changes.letters import replay
from rocketpy.console.changes.outcomes import ChangedMeanwhileError, ChangeOutcome, outcomes_of
from rocketpy.console.changes.resets import PlannedMove, PlannedReset, require_same
from rocketpy.console.changes.sending import Letter, Sent


class ClusterChanger:
    """Changes one cluster, with a client of its own for each change."""

    def __init__(self, access: ClusterAccess, trails: Path | None = None) -> None:
        """Open nothing yet; `trails` is a folder for what became of dead letters."""
        self._access, self._trails = access, trails

    def _connected(self) -> Cluster:
        return self._access.connect()

    def brokers(self) -> Sequence[str]:
        """Return the brokers that have a master now."""
        with self._connected() as cluster:
            return cluster.masters()

    # --- topics -----------------------------------------------------------------------------------

    def shapes(self, topic: str) -> Mapping[str, TopicShape]:
        """Return a topic as its brokers have it."""
        with self._connected() as cluster:
            return _shapes(ClusterTopics(cluster).settings(topic))

    def create_topic(
        self, topic: str, queues: int, brokers: Collection[str]
    ) -> tuple[ChangeOutcome, ...]:
        """Make a topic on some brokers."""
        with self._connected() as cluster:
            topics = ClusterTopics(cluster)
            topics.check_name(topic)
            try:
                there = topics.settings(topic)
            except TopicNotFoundError:
                there = {}
            new = TopicSettings(name=topic, read_queues=queues, write_queues=queues)
            wanted = {broker: new for broker in brokers if broker not in there}
            found = outcomes_of(topics.put_each(topic, wanted), "made")
        has = "it has this topic already; change it instead"
        return (
            *found,
            *(ChangeOutcome(each, has, False) for each in sorted({*brokers} & {*there})),
        )

    def change_topic(
        self, topic: str, shape: TopicShape, shown: Mapping[str, TopicShape]
    ) -> tuple[ChangeOutcome, ...]:
        """Change a topic; what a form does not show of it stays on each broker as it is."""
        with self._connected() as cluster:
            topics = ClusterTopics(cluster)
            topics.check_name(topic)
            now = topics.settings(topic)
            if {broker: each for broker, each in _shapes(now).items() if broker in shown} != shown:
                raise ChangedMeanwhileError(f"topic {topic!r} was changed")
            wanted = {broker: with_changes(now[broker], **shape._asdict()) for broker in shown}
            return outcomes_of(topics.put_each(topic, wanted), "changed")

    def delete_topic(self, topic: str) -> tuple[ChangeOutcome, ...]:
        """Delete a topic on all its brokers."""
        with self._connected() as cluster:
            return outcomes_of(ClusterTopics(cluster).delete_each(topic), "deleted")

    # --- messages ---------------------------------------------------------------------------------

    def send(self, topic: str, letter: Letter) -> Sent:
        """Send a message; without an answer it is sent again, under the same unique key."""
        draft = MessageDraft(
            body=letter.body,
            tags=letter.tag,
            keys=letter.keys,
            properties=letter.properties,
            queue_id=letter.queue_id,
            sharding_key=letter.sharding_key,
            delay_level=letter.delay_level,
        )
        with self._connected() as cluster:
            found = Producer(cluster).send(topic, draft)
        place = found.broker, found.queue_id, found.queue_offset
        return Sent(found.msg_id, *place, draft.is_waiting)

    # --- groups -----------------------------------------------------------------------------------

    def planned_reset(self, group: str, topic: str, to: str) -> PlannedReset:
        """Return where a group would read on."""
        check_group_name(group)
        with self._connected() as cluster:
            return _planned(cluster, group, topic, to)

    def reset(self, plan: PlannedReset) -> tuple[ChangeOutcome, ...]:
        """Have a group read on; consumers that run are told by their brokers."""
        with self._connected() as cluster:
            now = _planned(cluster, plan.group, plan.topic, plan.to)
            require_same(plan, now)
            if now.told_ms is not None and plan.told_ms is not None:
                groups = ClusterGroups(cluster)
                groups.move_to_time(plan.group, plan.topic, plan.told_ms)
                return plan.done("; its consumers were told of the time")
            errors = {
                broker: _moved(cluster, plan, broker)
                for broker in sorted({each.broker for each in plan.moves})
            }
        return tuple(each.outcome(errors[each.broker]) for each in plan.moves)

    # --- dead letters -----------------------------------------------------------------------------

    def trail(self, group: str) -> Mapping[DeadLetterPlace, TrailEntry]:
        """Return what became of dead letters, as the console's own folder has it."""
        return self._trail(group).read()

    def _trail(self, group: str) -> ReplayTrail:
        check_group_name(group)
        if self._trails is None:
            reason = "there is no folder for the trail of it"
            raise MessageRefusedError("replay", f"{reason}; a console with --users has one")
        name = hashlib.sha256(str(self._access.address).encode()).hexdigest()[:16]
        return ReplayTrail(self._trails / name / f"{group}.trail.jsonl", group)

    def replay(
        self,
        group: str,
        letters: Sequence[tuple[DeadLetterPlace, str]],
        *,
        shown: frozenset[DeadLetterPlace],
        by: str,
    ) -> tuple[ChangeOutcome, ...]:
        """Send copies; each has the unique key of its dead letter."""
        with self._connected() as cluster:
            producer, topic = Producer(cluster), dead_letter_topic(group)

            def send(place: DeadLetterPlace, to: str, run_id: str) -> str:
                letter = _letter(cluster, MessageQueue(topic, *place[:2]), place, run_id)
                found = producer.send(to, letter)
                return f"{to}/{found.broker}:{found.queue_id}/{found.queue_offset}"

            trail = self._trail(group)
            return replay(group, letters, shown=shown, trail=trail, send=send, by=by)


def _letter(
    cluster: Cluster, queue: MessageQueue, place: DeadLetterPlace, run_id: str
) -> MessageDraft:
    """Return the copy of a dead letter that is to be sent.

    Raises:
        MessageNotFoundError: it is not there any more.
    """
    at, columns = place.queue_offset, select("queue_offset,msg_id,body,properties,flag")
    pulled = Puller(cluster, most_messages=1).read(queue, at, at + 1)
    for batch in record_batches(pulled, columns):
        for row in batch.to_pylist():
            if (row["queue_offset"], row["msg_id"]) == (at, place.msg_id):
                name = f"{queue.topic}/{queue.key}/{at}"
                properties = sent_properties(dict(row["properties"]), place=name, run_id=run_id)
                return MessageDraft(body=row["body"], properties=properties, flag=row["flag"])
    raise MessageNotFoundError(place.msg_id, "it may be deleted by now")


def _planned(cluster: Cluster, group: str, topic: str, to: str) -> PlannedReset:
    target, resets = ResetTarget.of(to), GroupResets(cluster)
    rows = resets.reset(group, topic, target, dry_run=True)
    firsts = {each.queue: each.first for each in ClusterTopics(cluster).queues(topic)}
    moves = tuple(
        PlannedMove(
            each.queue.broker,
            each.queue.queue_id,
            each.before,
            each.after,
            firsts.get(each.queue, 0),
            each.end,
        )
        for each in rows
    )
    members, told_ms = len(ClusterGroups(cluster).members([group])[group]), None
    if members and not all(map(resets.can_tell, {each.broker for each in moves})):
        if target.distance is not None:
            raise GroupOnlineError(group, members)
        # The end is where the first message is that comes from now on.
        told_ms = int(time.time() * 1000) if to == LATEST else target.told_ms
    return PlannedReset(group, topic, to, moves, members, told_ms)


def _moved(cluster: Cluster, plan: PlannedReset, broker: str) -> RocketPyError | None:
    """Move a group in the queues of one broker; return why it could not be done, if so."""
    offsets = {
        MessageQueue(plan.topic, broker, each.queue_id): each.after
        for each in plan.moves
        if each.broker == broker
    }
    try:
        GroupResets(cluster).move(plan.group, offsets)
    except RocketPyError as error:
        return error
    return None


def _shapes(settings: Mapping[str, TopicSettings]) -> dict[str, TopicShape]:
    return {
        broker: TopicShape(each.write_queues, each.read_queues, each.perm)
        for broker, each in settings.items()
    }
