"""The options of members: what is refused, and what is made of those that are right."""

from __future__ import annotations

import pickle
import re

import pytest

from rocketpy.broker_core.rebalance.catalogue import StrategyChoice
from rocketpy.connector.member_options import MemberOptions
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions

READ = {"path": "store", "topic": "orders"}
MEMBER = {"consumerGroup": "billing", "member": "one"}
CONFIG = 'config:{"one": {"orders": [0]}}'

BAD = [
    ({"member": "one"}, "member", "of which group? give 'consumerGroup' as well"),
    ({**MEMBER, "member": "a/b"}, "member", "use 1 to 120 letters"),
    ({**MEMBER, "member": " "}, "member", "names nobody; give .option('member', ...)"),
    ({**MEMBER, "commitOffsets": "false"}, "commitOffsets", "hand queues over at the group's off"),
    ({"rebalanceStrategy": "circle"}, "rebalanceStrategy", "is for members; give .option('member'"),
    ({"memberLease": "5s"}, "memberLease", "is for members"),
    ({**MEMBER, "memberLease": "5"}, "memberLease", "give a time with its unit"),
    ({**MEMBER, "memberLease": "500ms"}, "memberLease", "is 0.5 s; give 1s or more"),
    ({**MEMBER, "rebalanceStrategy": "circel"}, "rebalanceStrategy", "did you mean 'circle'?"),
    ({**MEMBER, "messageModel": "both"}, "messageModel", "give clustering or broadcasting"),
    ({"messageModel": "broadcasting"}, "messageModel", "by whom? give 'member' as well"),
    (
        {**MEMBER, "messageModel": "broadcasting", "memberLease": "5s"},
        "memberLease",
        "each member reads all queues; leave it out",
    ),
    (
        {**MEMBER, "topic": None, "queues": '{"orders": [0]}'},
        "member",
        "together with 'queues'",
    ),
    ({**MEMBER, "topic": None, "view": "groups"}, "consumerGroup", "says nothing of view 'groups'"),
    ({**MEMBER, "topic": None, "scan": "commitlog"}, "consumerGroup", "says something of queues"),
]


def parse(options: dict[str, str | None]) -> ReadOptions:
    given = {**READ, **options}
    return ReadOptions.parse({name: value for name, value in given.items() if value is not None})


@pytest.mark.parametrize(("options", "option", "words"), BAD)
def test_a_wrong_option_is_refused(options: dict[str, str | None], option: str, words: str) -> None:
    with pytest.raises(OptionError, match=re.escape(words)) as refused:
        parse(options)
    assert refused.value.option == option


def test_a_batch_has_no_member() -> None:
    with pytest.raises(OptionError, match="is for streams; leave it out"):
        parse({**MEMBER}).for_batch()


def test_what_is_right_is_read_and_travels() -> None:
    options = parse({**MEMBER, "rebalanceStrategy": CONFIG, "memberLease": "5s"}).for_stream()
    strategy = StrategyChoice("config", CONFIG.partition(":")[2])
    assert options.member == MemberOptions(name="one", strategy=strategy, lease_ms=5000)
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_broadcasting_member_may_name_queues_and_need_not_commit() -> None:
    given = {"messageModel": "Broadcasting", "queues": '{"orders": [0]}', "commitOffsets": "false"}
    options = parse({**MEMBER, **given, "topic": None}).for_stream()
    assert options.member == MemberOptions(name="one", is_broadcasting=True)
