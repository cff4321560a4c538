"""The options of a stream that is a member of its consumer group, checked before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from rocketpy.broker_core.errors import MemberNameError, RebalanceError
from rocketpy.broker_core.rebalance.catalogue import StrategyChoice, parse_strategy
from rocketpy.broker_core.rebalance.membership import check_member_name
from rocketpy.connector.options import Given, OptionError

MODELS = ("clustering", "broadcasting")
_SHARING = ("rebalanceStrategy", "memberLease", "besideConsumers")  # of queues, among members
_DEFAULT_LEASE_S, _LEAST_LEASE_S = 30.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """What a member was asked for."""

    name: str
    is_broadcasting: bool = False
    strategy: StrategyChoice | None = None  # None: that of the last generation
    lease_ms: int = int(_DEFAULT_LEASE_S * 1000)
    beside_consumers: bool = False  # whether it starts though others consume with the group

    @classmethod
    def parse(cls, given: Given, *, commits: bool) -> MemberOptions | None:
        """Read the options of a member; None if the read is none.

        Raises:
            OptionError: one is wrong, or does not fit the others.
        """
        is_broadcasting = given.choice("messageModel", MODELS) == "broadcasting"
        name = given.text("member")
        if name is None:
            _refuse_without_member(given, is_broadcasting)
            return None
        try:
            check_member_name(name)
        except MemberNameError as cause:
            raise OptionError("member", str(cause)) from cause
        if given.text("consumerGroup") is None:
            raise OptionError("member", "of which group? give 'consumerGroup' as well")
        if not is_broadcasting:
            given.refuse_together("queues", "member")
            if not commits:
                reason = "is false, but members hand queues over at the group's offsets"
                raise OptionError("commitOffsets", f"{reason}; leave it out")
        for option in _SHARING:
            if is_broadcasting and option in given:
                reason = "says nothing of broadcasting, where each member reads all queues"
                raise OptionError(option, f"{reason}; leave it out")
        return cls(
            name=name,
            is_broadcasting=is_broadcasting,
            strategy=_strategy(given),
            lease_ms=_lease_ms(given),
            beside_consumers=given.flag("besideConsumers", False),
        )


def _refuse_without_member(given: Given, is_broadcasting: bool) -> None:
    if is_broadcasting:
        raise OptionError("messageModel", "is 'broadcasting': by whom? give 'member' as well")
    for option in ("member", *_SHARING):
        if option in given:
            needs = "names nobody" if option == "member" else "is for members"
            raise OptionError(option, f"{needs}; give .option('member', ...), or leave it out")


def _strategy(given: Given) -> StrategyChoice | None:
    text = given.text("rebalanceStrategy")
    if text is None:
        return None
    try:
        return parse_strategy(text)
    except RebalanceError as cause:
        raise OptionError("rebalanceStrategy", str(cause)) from cause


def _lease_ms(given: Given) -> int:
    lease_s = given.seconds("memberLease", _DEFAULT_LEASE_S)
    if lease_s < _LEAST_LEASE_S:
        raise OptionError("memberLease", f"is {lease_s:g} s; give 1s or more")
    return int(lease_s * 1000)
