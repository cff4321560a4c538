from __future__ import annotations

import pytest

from rocketpy.broker_core.client.namespaces import NO_NAMESPACE, Namespace
from rocketpy.broker_core.errors import MessageRefusedError

SHOP = Namespace("shop")


# As Apache's NamespaceUtil has them.
@pytest.mark.parametrize(
    ("given", "wrapped"),
    [
        ("orders", "shop%orders"),
        ("%RETRY%billing", "%RETRY%shop%billing"),
        ("%DLQ%billing", "%DLQ%shop%billing"),
        ("shop%orders", "shop%orders"),
        ("%RETRY%shop%billing", "%RETRY%shop%billing"),
        ("shopping", "shop%shopping"),
        ("SCHEDULE_TOPIC_XXXX", "SCHEDULE_TOPIC_XXXX"),
        ("rmq_sys_wheel_timer", "rmq_sys_wheel_timer"),
        ("CID_RMQ_SYS_TRANS", "CID_RMQ_SYS_TRANS"),
        ("", ""),
    ],
)
def test_names_get_their_namespace_once(given: str, wrapped: str) -> None:
    assert SHOP.wrap(given) == wrapped
    assert SHOP.show(wrapped) == given.replace("shop%", "")
    assert NO_NAMESPACE.wrap(given) == NO_NAMESPACE.show(given) == given


def test_names_of_others_stay_as_they_are() -> None:
    assert SHOP.show("bank%orders") == "bank%orders"
    assert not SHOP.has("bank%orders")
    assert not SHOP.has("shopping")
    assert SHOP.has("%DLQ%shop%billing")


@pytest.mark.parametrize("name", ["a%b", "a b", "ä", 3])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(MessageRefusedError, match="namespace="):
        Namespace(name)
