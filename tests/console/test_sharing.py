"""Members that share the queues of a group are told alike of a folder and of clusters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.connector.cluster.places import ClusterPlace, FolderPlace, running
from tests.console.serving import ask, serving
from tests.console.shop import watched
from tests.interop.installation import install, missing_commands

import rocketpy
from rocketpy.broker_core.rebalance.generation import read_generation
from rocketpy.broker_core.rebalance.membership import read_members
from rocketpy.broker_core.rebalance.records import GroupRecord
from rocketpy.connector.cluster.group_log import GroupLog
from rocketpy.console.sharing import MemberQueues


def share(store: rocketpy.Store) -> GroupRecord:
    """Have two members of a group; one has followed the newest generation, the other has not."""
    store.create_topic("orders", 3)
    store.join("billing", "one", "orders")
    store.rebalance("billing")
    store.follow("billing", "one")
    store.join("billing", "two", "orders", lease_ms=1)
    store.rebalance("billing", "circle")
    return GroupRecord(read_members(store.path, "billing"), read_generation(store.path, "billing"))


@pytest.mark.parametrize(
    "kind", ["folder", "ours", pytest.param("apache", marks=pytest.mark.interop)]
)
def test_members_have_their_lease_their_generation_and_their_queues(
    kind: str, tmp_path: Path
) -> None:
    if kind == "apache":
        missing = ", ".join(missing_commands())
        assert not (missing and os.environ.get("CI")), f"CI must have {missing}"
        if missing:
            pytest.skip(f"Apache's broker needs {missing}")
        install()
    with running(kind, tmp_path / "place") as place:
        if isinstance(place, FolderPlace):
            record = share(place.store)
        else:
            assert isinstance(place, ClusterPlace)
            with rocketpy.open(tmp_path / "store") as store:
                record = share(store)
            log = GroupLog(place.cluster, "billing")
            log.read()
            assert log.append(record)
        assert record.generation is not None
        with serving(watched(place)) as server:
            found = server._places[0].group("billing")
            nobody = server._places[0].group("nobody")
            page = ask(server, "/0/group?name=billing").text
    assert found.troubles == ()
    shared = found.shared
    assert shared is not None
    assert (shared.generation, shared.reason) == (
        record.generation.number,
        record.generation.reason,
    )
    one = next(each for each in shared.members if each.name == "one")
    assert one.is_alive
    assert one.acknowledged == 1
    assert one.holds == (MemberQueues("orders", "rocketpy", (0, 1, 2)),)
    assert [each.name for each in shared.members if not each.is_alive] == ["two"]
    assert "orders</a> on rocketpy: 0, 1, 2" in page
    assert found.member_count == 1
    assert nobody.shared is None
    assert nobody.member_count == (None if kind == "folder" else 0)


def test_damaged_records_are_told_beside_the_rest(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "store")
    with place.store:
        share(place.store)
        (file,) = (place.store.path / "rocketpy" / "members").glob("billing*")
        file.write_text("{}")
        with serving(watched(place)) as server:
            found = server._places[0].group("billing")
    assert found.shared is None
    assert [each.where for each in found.troubles] == ["billing"]
