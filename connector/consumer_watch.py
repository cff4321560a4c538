"""Clients that consume with the group of a member and know nothing of members: Java's, say.

Brokers give them the queues of the group, and members divide the same queues among themselves, so
both read the same queues and commit over each other: a message is read by one of them, or by both.

W1  A query does not become a member beside them in silence: it stops with an error that names them,
    or says so in the log, if it was told to start nevertheless.
W2  When they come later, the log says so, once for each of them. The query goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.rebalance.membership import Identity
from rocketpy.connector.backend import MemberKeeper

log = logging.getLogger(__name__)

_LOOK_S = 10.0


class GroupConsumedError(RocketPyError):
    """Is raised when clients that know nothing of members consume with the group of a member."""

    def __init__(self, group: str, member: str, clients: tuple[str, ...]) -> None:
        super().__init__(group, member, clients)
        self.group, self.member, self.clients = group, member, clients  # ids of the clients

    def __str__(self) -> str:
        return (
            f"member '{self.member}' does not join consumer group '{self.group}': these clients "
            f"consume with it now, and own its queues: {', '.join(self.clients)}. Stop them, or "
            "give the query a group of its own; with option 'besideConsumers' it joins, and both "
            "read the same queues"
        )


class ConsumerWatch:
    """Looks who else consumes with the group of one member. One thread."""

    def __init__(
        self,
        who: Identity,
        backend: MemberKeeper,
        *,
        is_allowed: bool,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._who, self._backend, self._is_allowed = who, backend, is_allowed
        self._now_s = now_s
        self._known: set[str] = set()
        self._seen_s: float | None = None

    def require_none(self) -> None:
        """Look before the member joins; do nothing when it joins again.

        Raises:
            GroupConsumedError: others consume, and the member was not told to start beside them.
            UnreachableError: that cannot be seen now.
        """
        if self._seen_s is not None:
            return
        found = self._backend.consumers(self._who.group)
        if found and not self._is_allowed:
            raise GroupConsumedError(self._who.group, self._who.name, tuple(sorted(found)))
        self._note(found)

    def look_now_and_then(self) -> None:
        """Look again, every ten seconds, once the member has joined; must not raise."""
        if self._seen_s is None or self._now_s() - self._seen_s < _LOOK_S:
            return
        try:
            self._note(self._backend.consumers(self._who.group))
        except RocketPyError as cause:
            self._seen_s = self._now_s()
            log.warning("who consumes with group %s is not known: %s", self._who.group, cause)

    def _note(self, found: set[str]) -> None:
        self._seen_s = self._now_s()
        if found - self._known:
            text = (
                "clients consume with group %s beside its member %s, and read the same queues; "
                "stop them, or give the query a group of its own: %s"
            )
            log.warning(text, self._who.group, self._who.name, ", ".join(sorted(found)))
        self._known = found
