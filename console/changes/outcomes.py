"""What a change came to: told for each broker, queue or message by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rocketpy.broker_core.errors import RocketPyError


class ChangedMeanwhileError(ValueError):
    """Is raised when what was shown before a change holds no more; nothing was changed."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} since this page was shown; nothing was changed: look again"


class ChangeOutcome(NamedTuple):
    """What was done somewhere, or why it was not."""

    where: str
    what: str
    is_done: bool = True

    @classmethod
    def of(cls, where: str, error: RocketPyError | None, done: str = "done") -> ChangeOutcome:
        """Return what came of it: an error, or that it was done."""
        return cls(where, done) if error is None else cls(where, str(error), is_done=False)


class Done(NamedTuple):
    """A change that was made, or was tried: what, what came of it, and a page that shows it."""

    what: str
    outcomes: tuple[ChangeOutcome, ...]
    page: str = ""
    params: Mapping[str, object] = {}

    @property
    def failures(self) -> int:
        """How many were not done."""
        return sum(not each.is_done for each in self.outcomes)


def outcomes_of(errors: Mapping[str, RocketPyError | None], done: str) -> tuple[ChangeOutcome, ...]:
    """Return what came of a request to each broker."""
    return tuple(ChangeOutcome.of(broker, error, done) for broker, error in sorted(errors.items()))
