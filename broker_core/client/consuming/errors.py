"""Errors of consumers."""

from __future__ import annotations

from rocketpy.broker_core.errors import RocketPyError


class QueueNotHeldError(RocketPyError):
    """Is raised when a consumer is asked for a queue that it does not read now."""

    def __init__(self, queue: str, held: str) -> None:
        super().__init__(queue, held)
        self.queue, self.held = queue, held

    def __str__(self) -> str:
        return f"{self.queue} is not read by this consumer now, but {self.held or 'no queue'}"


class GroupTakenError(RocketPyError):
    """Is raised when a client has a consumer of a group already."""

    def __init__(self, group: str, client_id: str) -> None:
        super().__init__(group, client_id)
        self.group, self.client_id = group, client_id

    def __str__(self) -> str:
        return (
            f"client {self.client_id} has a consumer of group {self.group!r} already: brokers "
            "cannot tell the two apart; close it, or connect once more"
        )


class ForeignConsumerError(RocketPyError):
    """Is raised in a forked child that uses a consumer of its parent."""

    def __init__(self, what: str, owner: int) -> None:
        super().__init__(what, owner)
        self.what, self.owner = what, owner

    def __str__(self) -> str:
        return f"{self.what} belongs to process {self.owner}; make one after the fork"
