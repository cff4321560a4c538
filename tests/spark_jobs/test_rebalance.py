"""The rebalance job on a store: many groups at once, dry runs, what it leaves alone, its words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.errors import RebalanceError, StoreNotFoundError
from rocketpy.broker_core.rebalance.catalogue import parse_strategy
from rocketpy.broker_core.rebalance.membership import Identity
from rocketpy.spark_jobs import cli  # noqa: F401  (adds `job` to the command line)
from rocketpy.spark_jobs.group_places import groups_at
from rocketpy.spark_jobs.rebalance import plan_groups, publish, rebalance

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

GROUPS = [f"group-{number}" for number in range(6)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    """Six groups of two members on one topic; the last group is deserted."""
    with rocketpy.open(tmp_path / "store") as opened:
        opened.create_topic("orders", 8)
        for queue_id in range(8):
            opened.send("orders", b"x", queue_id=queue_id)
        for group in GROUPS:
            for member in ("a", "b"):
                opened.join(group, member, "orders")
        for member in ("a", "b"):
            opened.leave(GROUPS[-1], member)
        opened.join(GROUPS[-1], "late", "orders", lease_ms=1)
        yield opened
        assert list(opened.verify()) == []


def test_a_run_makes_the_next_generation_of_every_group_and_a_second_run_none(
    spark: SparkSession, store: rocketpy.Store
) -> None:
    dry = rebalance(spark, store.path, strategy="circle", dry_run=True)
    assert [outcome.status for outcome in dry] == ["made"] * 5 + ["deserted"]
    assert store.generation(GROUPS[0]) is None
    made = rebalance(spark, store.path, strategy="circle")
    assert made == dry
    first = made[0]
    assert (first.before, first.after, first.moved, first.lag) == (0, 1, 8, 8)
    assert (first.moves, first.reason) == ("nobody → a: 4, nobody → b: 4", "the first")
    for group in GROUPS[:-1]:
        generation = store.generation(group)
        assert generation is not None
        assert (generation.number, generation.made_by) == (1, "job")
        assert [queue.queue_id for queue in generation.of("b")] == [1, 3, 5, 7]
    assert {outcome.status for outcome in rebalance(spark, store.path)} == {"same", "deserted"}

    store.commit(GROUPS[1], "orders", dict.fromkeys(range(8), 1))
    store.leave(GROUPS[1], "a")
    (changed,) = rebalance(spark, store.path, groups=[GROUPS[1]])
    assert (changed.after, changed.strategy, changed.lag) == (2, "circle", 0)
    assert (changed.moves, changed.reason) == ("a → b: 4", "a left")


def test_the_command_says_what_moved_and_why(spark: SparkSession, store: rocketpy.Store) -> None:
    assert spark is not None
    run = CliRunner().invoke
    shown = run(app, ["job", "rebalance", str(store.path), "--dry-run", "--group", "group-0"])
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.output.split())
    for part in ("none → 1", "nobody → a: 4,", "the first", "8 queues would move"):
        assert part in words
    lines = run(
        app, ["job", "rebalance", str(store.path), "--json", "--strategy", "machineRoomNearby"]
    )
    outcomes = [json.loads(line) for line in lines.output.splitlines()]
    assert [each["group"] for each in outcomes] == GROUPS
    assert outcomes[0]["status"] == "refused"
    assert "tells no machine room; call it room@name" in outcomes[0]["reason"]
    wrong = run(app, ["job", "rebalance", str(store.path), "--strategy", "circel"])
    assert wrong.exit_code == 2


def test_groups_of_a_cluster_are_divided_as_those_of_a_folder(spark: SparkSession) -> None:
    with rocketpy.local_broker(brokers=2, topics={"orders": 2}) as servers:
        cluster = f"rocketmq://{servers.namesrv_addr}"
        assert rebalance(spark, cluster) == []
        with groups_at(cluster).registry() as registry:
            for group in GROUPS[:2]:
                for member in ("a", "b"):
                    registry.join(Identity(group, member, member), ("orders",), 60_000)
            registry.join(Identity("empty", "late", "late"), ("orders",), 1)
            made = rebalance(spark, cluster, strategy="circle")
            assert [(each.group, each.status) for each in made] == [
                ("empty", "deserted"),
                (GROUPS[0], "made"),
                (GROUPS[1], "made"),
            ]
            assert (made[1].queues, made[1].moves) == (4, "nobody → a: 2, nobody → b: 2")
            generation = registry.generation(GROUPS[0])
            assert generation is not None
            assert [queue.queue_id for queue in generation.of("b")] == [1, 1]
            place = groups_at(cluster)
            planned = plan_groups(place, GROUPS[:2], "averagely")
            quicker = registry.rebalance(GROUPS[0], parse_strategy("backlog"), made_by="a test")
            assert publish(place, planned) == {GROUPS[0]}
            assert registry.generation(GROUPS[0]) == quicker
        lines = CliRunner().invoke(app, ["job", "rebalance", cluster, "--json"]).output
        outcomes = [json.loads(line) for line in lines.splitlines()]
        assert [(each["status"], each["after"]) for each in outcomes[1:]] == [("same", 2)] * 2


def test_wrong_requests_are_refused_before_anything_is_computed(
    spark: SparkSession, store: rocketpy.Store, tmp_path: Path
) -> None:
    with pytest.raises(RebalanceError, match=r"did you mean 'circle'\?"):
        rebalance(spark, store.path, strategy="circel")
    with pytest.raises(RebalanceError, match="no member has ever joined it"):
        rebalance(spark, store.path, groups=["nobody"])
    with pytest.raises(StoreNotFoundError):
        rebalance(spark, tmp_path / "nowhere")
    with rocketpy.open(tmp_path / "new") as empty:
        assert rebalance(spark, empty.path) == []


def test_a_group_whose_members_were_quicker_is_left_alone(store: rocketpy.Store) -> None:
    place = groups_at(store.path)
    planned = plan_groups(place, GROUPS[:2], None)
    quicker = store.rebalance(GROUPS[0], "circle")
    assert publish(place, planned) == {GROUPS[0]}
    assert store.generation(GROUPS[0]) == quicker
    other = store.generation(GROUPS[1])
    assert other is not None
    assert other.strategy == "averagely"
    folder = store.path / "rocketpy" / "generations"
    assert sorted(path.name for path in folder.iterdir()) == ["group-0.json", "group-1.json"]
