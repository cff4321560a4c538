"""What Tab offers, asked as bash asks it; and that a Tab never fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import COMMAND

import rocketpy
from rocketpy.broker_core.cli.completion import complete_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    with rocketpy.open(folder / "data" / "shop-store") as store:
        store.create_topic("orders", 1)
        store.create_topic("bills", 1)
        receipt = store.send("orders", b"1")
        store.send_back(receipt, group="shipping", delay_level=-1)
        store.commit("billing", "orders", {0: 1})
    (folder / "data" / "not-a-store").mkdir()
    return folder


def offered(folder: Path, *words: str) -> list[str]:
    """Return what bash is offered for the last of the words."""
    asked = {
        "COMP_WORDS": " ".join(["rocketpy", *words]),
        "COMP_CWORD": str(len(words)),
        "_ROCKETPY_COMPLETE": "complete_bash",
    }
    code = "import sys; sys.argv[0] = 'rocketpy'; from rocketpy.broker_core.cli import main; main()"
    ended = subprocess.run(
        [COMMAND[0], "-c", code],
        cwd=folder,
        env=os.environ | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tail", ""), ["data/shop-store"]),
        (("tail", "data/shop-store", ""), ["bills", "orders"]),
        (("tail", "data/shop-store", "or"), ["orders"]),
        (("tail", "data/shop-store", "%"), ["%DLQ%shipping"]),
        (("group", "lag", "data/shop-store", ""), ["billing", "shipping"]),
        (("group", "lag", "data/shop-store", "--topic", "b"), ["bills"]),
        (("group", "re"), ["reset"]),
        (("tail", "data/nowhere", ""), []),
        (("tail", "data/not-a-store", ""), []),
    ],
)
def test_tab_offers(folder: Path, words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(folder, *words) == expected


def test_a_store_whose_files_are_damaged_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "config").mkdir()
    (tmp_path / "store" / "config" / "topics.json").write_text("{")
    before = sorted(tmp_path.rglob("*"))
    assert offered(tmp_path, "tail", "store", "") == []
    assert sorted(tmp_path.rglob("*")) == before


def test_stores_are_offered_as_they_were_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert complete_store("./da") == ["./data/shop-store"]
    assert complete_store("data/sh") == ["data/shop-store"]
    assert complete_store(f"{folder}/") == [f"{folder}/data/shop-store"]
    assert complete_store("nowhere/") == []
