"""Members of consumer groups: who reads a store's topics, and who reads which queue."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from rocketpy.broker_core.embedded.boundary import guarded
from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.rebalance.catalogue import parse_strategy
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.membership import Identity, Member
from rocketpy.broker_core.rebalance.records import StoreRecords
from rocketpy.broker_core.rebalance.registry import DEFAULT_LEASE_MS, Registry

_MADE_BY = "store.rebalance"


@guarded
class Members(StoreHandle):
    """The side of a store that members of groups use."""

    @lazy_property
    def _registry(self) -> Registry:
        return Registry(StoreRecords(self._store, self._store.locked))

    @lazy_property
    def _token(self) -> str:
        return uuid.uuid4().hex

    def members(self, group: str) -> dict[str, Member]:
        """Return the members of a group that live, by name."""
        self._store.require_open()
        return self._registry.members(group)

    def join(
        self,
        group: str,
        member: str,
        topics: str | Sequence[str],
        *,
        lease_ms: int = DEFAULT_LEASE_MS,
    ) -> Member:
        """Become a member of a group for as long as the lease is renewed.

        A member that joins under the name of a living one replaces it, and gets its queues.
        """
        self._require_writable("join a group")
        if lease_ms < 1:
            raise RebalanceError(f"lease_ms={lease_ms}", "give 1 ms or more")
        names = (topics,) if isinstance(topics, str) else tuple(sorted(set(topics)))
        return self._registry.join(Identity(group, member, self._token), names, lease_ms)

    def renew(self, group: str, member: str) -> Member:
        """Begin the lease of a member again.

        Raises:
            MemberNotFoundError: it left, or its lease was over and others have its queues.
            MemberReplacedError: another process joined under its name.
        """
        self._require_writable("renew a lease")
        return self._registry.renew(Identity(group, member, self._token))

    def leave(self, group: str, member: str) -> None:
        """Cease to be a member; commit the offsets before. Leaving twice is fine."""
        self._require_writable("leave a group")
        self._registry.leave(Identity(group, member, self._token))

    def follow(self, group: str, member: str) -> Member:
        """Give up and take queues as the newest generation says; return the member as it is then.

        Call it when what was read is done and its offsets are committed.

        Raises:
            MemberNotFoundError, MemberReplacedError: it is not a member (any more).
        """
        self._require_writable("follow a generation")
        return self._registry.hand_over(Identity(group, member, self._token))

    def generation(self, group: str) -> Generation | None:
        """Return the newest assignment of a group."""
        self._store.require_open()
        return self._registry.generation(group)

    def rebalance(self, group: str, strategy: str | None = None) -> Generation | None:
        """Make the next generation of a group; None if it would say the same.

        Without a strategy (docs/rebalance.md) it is that of the last time, or averagely.
        """
        self._require_writable("rebalance")
        choice = parse_strategy(strategy) if strategy is not None else None
        return self._registry.rebalance(group, choice, made_by=_MADE_BY)
