"""What jobs refuse."""

from __future__ import annotations

from rocketpy.broker_core.errors import RocketPyError


class JobRefusedError(RocketPyError):
    """Is raised for what a job cannot do as it was asked: says what is wrong, and the remedy."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"
