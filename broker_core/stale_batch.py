"""What is wrong with a batch that is older than the last one of its writer."""

from __future__ import annotations

from rocketpy.broker_core.errors import StoreError


class StaleBatchError(StoreError):
    """Is raised for a batch whose number is below that of the last batch of its writer."""

    def __init__(self, writer: str, number: int, last: int) -> None:
        super().__init__(writer, number, last)
        self.writer, self.number, self.last = writer, number, last

    def __str__(self) -> str:
        return (
            f"batch {self.number} of {self.writer!r} was not stored: its batch {self.last} is in "
            "the store already, and only that one can be a replay. A streaming query has this from "
            "an old or copied checkpoint: start it from its newest one, or from a new checkpoint "
            "at the offsets where it should go on. With a txnAppId or app_id, give numbers that "
            "grow, or another name"
        )
