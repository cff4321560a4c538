"""What a consumer wants of its topics: all, some tags, or by SQL92.

S1  Brokers know tags by their hash only, so messages are looked at again here.
S2  SQL is the broker's work alone.

Filters bring numpy and pyarrow with them, so they are imported by who has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.namespaces import NO_NAMESPACE, Namespace
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    EVERYTHING,
    SQL92,
    TAG,
    SubscriptionData,
)


@dataclass(frozen=True, slots=True)
class Sql:
    """A filter by properties, `Sql("amount > 10 AND region = 'EU'")`.

    Raises:
        FilterSyntaxError: it is no SQL92 filter.
    """

    expression: str

    def __post_init__(self) -> None:
        from rocketpy.broker_core.filters.parser import parse

        parse(self.expression)


Wanted = str | Sql  # tags with `||` between them or `*`; or SQL


@dataclass(frozen=True, slots=True)
class Subscription:
    """What is wanted of one topic. `version_ms` is when it was made: brokers keep the newest."""

    topic: str
    wanted: Wanted = EVERYTHING
    version_ms: int = 0
    _tags: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names: frozenset[str] = frozenset()
        if isinstance(self.wanted, str) and self.wanted.strip() != EVERYTHING:
            from rocketpy.broker_core.filters.tags import TagFilter

            names = TagFilter.parse(self.wanted).names
        object.__setattr__(self, "_tags", names)

    @property
    def expression(self) -> str:
        """The filter as brokers read it."""
        return self.wanted.expression if isinstance(self.wanted, Sql) else self.wanted

    @property
    def expression_type(self) -> str:
        """Which kind of filter it is."""
        return SQL92 if isinstance(self.wanted, Sql) else TAG

    def passed(self, messages: Iterable[ReceivedMessage]) -> list[ReceivedMessage]:
        """Return the messages that are wanted, of those that a broker gave."""
        if not self._tags:
            return [*messages]
        return [each for each in messages if each.tags in self._tags]

    def on_the_wire(self) -> SubscriptionData:
        """Return what a heartbeat says of it."""
        names = tuple(sorted(self._tags))
        return SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            tags=names,
            codes=_codes(names),
            sub_version=self.version_ms,
            expression_type=self.expression_type,
        )


def _codes(names: tuple[str, ...]) -> tuple[int, ...]:
    if not names:
        return ()
    from rocketpy.broker_core.java_hash import string_hash

    return tuple(string_hash(name) for name in names)


Topics = str | Sequence[str] | Mapping[str, Wanted]


def subscriptions(
    topics: Topics, version_ms: int, names: Namespace = NO_NAMESPACE
) -> dict[str, Subscription]:
    """Return the subscriptions by topic: of one, of several, or of several with a filter each.

    Topics are given as programs of a namespace call them.

    Raises:
        MessageRefusedError: a filter names no tag.
    """
    if isinstance(topics, str):
        topics = {topics: EVERYTHING}
    elif not isinstance(topics, Mapping):
        topics = dict.fromkeys(topics, EVERYTHING)
    wrapped = {names.wrap(name): wanted for name, wanted in topics.items()}
    return {name: Subscription(name, wanted, version_ms) for name, wanted in wrapped.items()}
