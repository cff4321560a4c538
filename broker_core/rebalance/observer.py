"""Who of a group is dead, judged by what the observer itself saw, on its own steady clock.

The clocks of two machines may differ, so the time in a member's record says little elsewhere. But
each renewal changes the record: whoever saw no change for as long as the lease is, by a clock that
only grows, knows that the lease is over. Its holder knows so earlier, as it counts from before it
wrote the record.

A member that was never seen to renew its lease is dead as well if by this machine's clock it was
over more than ten minutes ago: nobody waits for members that died long ago.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocketpy.broker_core.clock import Clock, steady_ms
from rocketpy.broker_core.rebalance.membership import Member, Members

CLOCKS_APART_MS = 600_000  # by how much the clocks of two machines may differ


@dataclass(frozen=True, slots=True)
class _Sighting:
    record: tuple[str, int]  # token and end of the lease: what a renewal changes
    since_ms: int  # steady
    has_changed: bool  # seen before, with another record


class Observer:
    """Remembers when the record of each member was first seen as it is. Threads may share it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, str], _Sighting] = {}

    def see(self, group: str, members: Members) -> None:
        """Note what the records of a group say now."""
        now_ms = steady_ms(self._clock)
        for name, member in members.items():
            record, before = (member.token, member.until_ms), self._seen.get((group, name))
            if before is None or before.record != record:
                sighting = _Sighting(record, now_ms, has_changed=before is not None)
                self._seen[group, name] = sighting

    def living(self, group: str, members: Members) -> dict[str, Member]:
        """Return those who live; sees them as well."""
        self.see(group, members)
        return {name: each for name, each in members.items() if not self._is_dead(group, each)}

    def _is_dead(self, group: str, member: Member) -> bool:
        seen = self._seen[group, member.name]
        is_silent = steady_ms(self._clock) - seen.since_ms >= member.lease_ms
        is_long_over = self._clock.now_ms() >= member.until_ms + CLOCKS_APART_MS
        return is_silent or (is_long_over and not seen.has_changed)
