from __future__ import annotations

from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.store_path import StorePathError, store_path


@pytest.mark.parametrize(
    "given",
    [
        "/data/a b",
        "file:/data/a b",
        "file:///data/a%20b",
        "file://localhost/data/a b",
        "FILE:///data/a b",
        Path("/data/a b"),
        Path("file:///data/a b"),
    ],
)
def test_a_folder_and_its_uri_are_the_same(given: str | Path) -> None:
    assert store_path(given) == Path("/data/a b")


@pytest.mark.parametrize("given", ["shop-store", "a:b", "./s3a:/b", "/s3a:/b", "C:b", "a b:/c"])
def test_what_is_no_uri_is_a_folder(given: str) -> None:
    assert store_path(given) == Path(given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("s3a://bucket/x", "'s3a:'"),
        (Path("s3a://bucket/x"), "'s3a:'"),
        ("hdfs://host:8020/x", "'hdfs:'"),
        ("dbfs:/x", "'dbfs:'"),
        ("abfss://c@a.dfs.core.windows.net/x", "'abfss:'"),
        ("file://host/x", "another host"),
    ],
)
def test_another_scheme_is_refused_by_name(given: str | Path, named: str) -> None:
    with pytest.raises(StorePathError, match=named):
        store_path(given)


def test_open_takes_the_uri_of_a_folder(tmp_path: Path) -> None:
    with rocketpy.open((tmp_path / "a store").as_uri()) as store:
        store.create_topic("t")
    with rocketpy.open(tmp_path / "a store", read_only=True) as store:
        assert list(store.topics()) == ["t"]


@pytest.mark.parametrize("read_only", [False, True])
def test_open_refuses_another_scheme_and_makes_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorePathError, match="'s3a:'"):
        rocketpy.open("s3a://bucket/x", read_only=read_only)
    with pytest.raises(StorePathError, match="'s3a:'"):
        MessageStore(
            Path("s3a://bucket/x"), StoreConfig(), clock=SystemClock(), read_only=read_only
        )
    assert list(tmp_path.iterdir()) == []
