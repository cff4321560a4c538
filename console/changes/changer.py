"""What can be changed in a place: the interface that a folder and a cluster have in common.

Any thread may ask. An error is raised where nothing was done at all; what was done in part is told
by outcomes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from rocketpy.broker_core.retry.trail import DeadLetterPlace, TrailEntry
from rocketpy.console.changes.outcomes import ChangeOutcome
from rocketpy.console.changes.resets import PlannedReset
from rocketpy.console.changes.sending import Letter, Sent


class TopicShape(NamedTuple):
    """What of a topic can be changed, on one broker."""

    write_queues: int
    read_queues: int
    perm: int


class PlaceChanger(Protocol):
    """A place that can be changed. All methods raise RocketPyError if it cannot be reached."""

    def brokers(self) -> Sequence[str]:
        """Return the brokers that a topic can be made on; one for a folder."""

    # --- topics -----------------------------------------------------------------------------------

    def shapes(self, topic: str) -> Mapping[str, TopicShape]:
        """Return a topic as its brokers have it.

        Raises:
            TopicNotFoundError: there is no such topic.
        """

    def create_topic(
        self, topic: str, queues: int, brokers: Collection[str]
    ) -> tuple[ChangeOutcome, ...]:
        """Make a topic on some brokers; one that has it already keeps it as it is.

        Raises:
            TopicNameError: RocketMQ would not take the name.
        """

    def change_topic(
        self, topic: str, shape: TopicShape, shown: Mapping[str, TopicShape]
    ) -> tuple[ChangeOutcome, ...]:
        """Change a topic on the brokers that were shown.

        Raises:
            ChangedMeanwhileError: a broker has it otherwise than it was shown.
            TopicNotFoundError, TopicNameError
        """

    def delete_topic(self, topic: str) -> tuple[ChangeOutcome, ...]:
        """Delete a topic with its messages, on all its brokers.

        Raises:
            TopicNotFoundError, TopicNameError
        """

    # --- messages ---------------------------------------------------------------------------------

    def send(self, topic: str, letter: Letter) -> Sent:
        """Send a message. Where no answer came it may be stored nevertheless.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was sent.
        """

    # --- groups -----------------------------------------------------------------------------------

    def planned_reset(self, group: str, topic: str, to: str) -> PlannedReset:
        """Return where a group would read on, queue by queue; nothing is changed.

        `to` is `earliest`, `latest`, a time, or a distance from where it is: `+10`, `-10`.

        Raises:
            TopicNotFoundError, GroupNameError, MessageRefusedError
        """

    def reset(self, plan: PlannedReset) -> tuple[ChangeOutcome, ...]:
        """Have a group read on exactly where a plan says.

        Raises:
            ChangedMeanwhileError: it is elsewhere by now than the plan says.
        """

    # --- dead letters -----------------------------------------------------------------------------

    def trail(self, group: str) -> Mapping[DeadLetterPlace, TrailEntry]:
        """Return what became of dead letters of a group that were replayed here."""

    def replay(
        self,
        group: str,
        letters: Sequence[tuple[DeadLetterPlace, str]],
        *,
        shown: frozenset[DeadLetterPlace],
        by: str,
    ) -> tuple[ChangeOutcome, ...]:
        """Have dead letters go to topics, each once; those of `shown` once more.

        Raises:
            ReplayRunningError: somebody replays letters of this group now.
        """
