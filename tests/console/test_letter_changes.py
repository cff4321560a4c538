"""Dead letters replayed and exported from the console: each once, each told by itself."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.connector.cluster.places import FolderPlace, Place
from tests.console.shop import CAUSES, SCRIPT, shop, until, watched
from tests.console.visiting import Visitor, audited, hidden_fields, visiting

import rocketpy
from rocketpy.broker_core.errors import ReplayRunningError
from rocketpy.broker_core.retry.journal import replay_lock
from rocketpy.broker_core.retry.trail import DeadLetterPlace, ReplayTrail, TrailEntry, trail_of
from rocketpy.console.answers import MessageQuestion, StoredMessage
from rocketpy.console.changes.cluster import ClusterChanger
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace

REPLAY = "/0/change/replay"
ALL = f"{REPLAY}?group=billing&all=1"


class There(NamedTuple):
    """A place with dead letters, and an operator."""

    made: Place
    place: WatchedPlace
    otto: Visitor
    vera: Visitor
    folder: Path

    def copies(self) -> list[StoredMessage]:
        found = self.place.newest(MessageQuestion(topic="orders")).messages
        return [each for each in found if "ROCKETPY_REPLAY_RUN" in each.properties]

    def letters(self) -> list[str]:
        found = self.place.dead_letters("billing", MessageQuestion(topic="")).letters.messages
        return [f"{each.broker}:{each.queue_id}:{each.queue_offset}" for each in found]


@contextmanager
def a_place(kind: str, folder: Path) -> Iterator[There]:
    with shop(kind, folder / "store") as made:
        place = watched(made, folder / "trails")
        with visiting(folder, place) as visitors:
            yield There(made, place, visitors["otto"], visitors["vera"], folder)


@pytest.fixture(params=["folder", "ours"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[There]:
    with a_place(str(request.param), tmp_path) as found:
        yield found


@pytest.fixture(scope="module", params=["folder", "ours"])
def untouched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[There]:
    """One for all tests that change nothing."""
    with a_place(str(request.param), tmp_path_factory.mktemp("shop")) as found:
        yield found


def test_the_chosen_go_to_their_first_topic_and_are_what_they_were(there: There) -> None:
    first, *_ = there.letters()
    page = there.otto.get(f"{REPLAY}?group=billing&letter={first}")
    assert "<dt>To orders</dt><dd>1</dd>" in page.text
    assert there.copies() == []  # a look changes nothing
    shown = there.otto.follow(there.otto.post(REPLAY, hidden_fields(page.text))).text
    assert "Done." in shown
    (copy,) = there.copies()
    letter = there.place.dead_letters("billing", MessageQuestion(topic="")).letters.messages[0]
    assert (copy.body, copy.keys, copy.tags) == (letter.body, letter.keys, letter.tags)
    assert copy.uniq_key == letter.uniq_key
    assert copy.reconsume_times == 0
    assert copy.properties["ROCKETPY_REPLAYED_FROM"].startswith("%DLQ%billing/")
    assert not {"RETRY_TOPIC", "ROCKETPY_CAUSE", "DELAY"} & copy.properties.keys()
    ended = audited(there.folder)[-1]
    assert (ended["what"], ended["phase"], len(ended["result"])) == ("replay", "done", 1)


def test_each_goes_once_and_once_more_by_a_word(there: There) -> None:
    otto = there.otto
    old = hidden_fields(otto.get(ALL).text)
    assert otto.post(REPLAY, hidden_fields(otto.get(ALL).text)).status == 303
    assert len(there.copies()) == len(CAUSES)
    page = otto.get(ALL).text
    assert f"<dt>Went before</dt><dd>{len(CAUSES)}</dd>" in page
    assert "by otto" in page
    got = otto.post(REPLAY, hidden_fields(page))
    assert (got.status, "all of them went before" in got.text) == (400, True)
    shown = otto.follow(otto.post(REPLAY, old)).text  # of a preview before that
    assert shown.count("somebody else replayed it meanwhile") == len(CAUSES)
    assert len(there.copies()) == len(CAUSES)
    one = otto.get(f"{REPLAY}?group=billing&letter={there.letters()[0]}").text
    assert otto.post(REPLAY, {**hidden_fields(one), "again": "again"}).status == 303
    assert len(there.copies()) == len(CAUSES) + 1


def test_a_copy_that_the_trail_does_not_know_is_found_by_its_keys(there: There) -> None:
    assert there.otto.post(REPLAY, hidden_fields(there.otto.get(ALL).text)).status == 303
    (trail,) = there.folder.rglob("*.trail.jsonl")
    trail.unlink()
    until(lambda: "a copy of it is in orders" in there.otto.get(ALL).text)
    until(lambda: f"<dd>{len(CAUSES)}</dd>" in there.otto.get(ALL).text)


def test_what_cannot_go_is_told_of_each_and_the_others_go(there: There) -> None:
    page = there.otto.get(f"{ALL}&to=nowhere").text
    assert f"<dt>Cannot go</dt><dd>{len(CAUSES)}</dd>" in page
    assert "there is no topic nowhere" in page
    assert "Replay them so" not in page
    fields = hidden_fields(there.otto.get(ALL).text)
    shown = json.loads(fields["shown"][0])
    shown[0][3] = "7F00000100002A9F0000000000000007"  # another dead letter than was shown
    shown[1][4] = "nowhere"
    shown[2][2] = 4711
    fields["shown"] = [json.dumps(shown)]
    text = there.otto.follow(there.otto.post(REPLAY, fields)).text
    assert "3 of 4 could not be done" in text
    assert len(there.copies()) == 1
    page = there.otto.get(ALL).text
    assert "<dt>To orders</dt><dd>3</dd>" in page  # those that failed may go


def test_a_script_in_a_cause_is_text(untouched: There) -> None:
    assert SCRIPT not in untouched.otto.get(ALL).text
    assert "&lt;script&gt;" in untouched.otto.get(ALL).text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("group=billing", "choose at least one"),
        ("group=billing&letter=../../etc", "choose it on the page"),
        ("group=billing&letter=b:0:4711", "b"),
        ("group=..%2F..%2Fetc&all=1", "etc"),
        ("", "it is missing"),
    ],
)
def test_a_choice_that_cannot_be_is_told(query: str, says: str, untouched: There) -> None:
    got = untouched.otto.get(f"{REPLAY}?{query}")
    assert got.status in (400, 404, 503)
    assert says in got.text
    many = "&".join(["letter=b:0:1"] * 201)
    assert "choose 200 at most" in untouched.otto.get(f"{REPLAY}?group=billing&{many}").text


def test_an_export_has_all_of_it_and_no_formula(untouched: There) -> None:
    got = untouched.vera.get("/0/export?group=billing&all=1&as=jsonl")
    assert got.headers["content-disposition"] == 'attachment; filename="dead-letters-billing.jsonl"'
    rows = [json.loads(line) for line in got.text.splitlines()]
    assert [each["cause"] for each in rows] == [*reversed(CAUSES)]
    assert {each["first_topic"] for each in rows} == {"orders"}
    chosen = untouched.vera.get(f"/0/export?group=billing&letter={untouched.letters()[1]}&as=csv")
    (row,) = csv.DictReader(io.StringIO(chosen.text, newline=""))
    assert row["msg_id"] == rows[1]["msg_id"]
    assert row["body"] == rows[1]["body"]
    assert untouched.vera.get("/0/export?group=billing&all=1&as=exe").status == 400
    assert untouched.vera.get("/7/export?group=billing&all=1").status == 404


def test_a_cell_that_would_be_a_formula_is_text(tmp_path: Path) -> None:
    formulas = ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1"]
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 1)
        for each in formulas:
            receipt = store.send("orders", each, tags="=tag", keys="=key")
            store.send_back(receipt, group="billing", delay_level=-1, cause=each)
    place = WatchedPlace(FolderReader(tmp_path / "store"))
    with visiting(tmp_path, place) as visitors:
        text = visitors["vera"].get("/0/export?group=billing&all=1&as=csv").text
    rows = [*csv.DictReader(io.StringIO(text, newline=""))]
    assert len(rows) == len(formulas)
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert {row["body"] for row in rows} == {f"'{each}" for each in formulas}


def test_two_do_not_replay_at_once(there: There) -> None:
    fields = hidden_fields(there.otto.get(ALL).text)
    changer = there.place.changer
    lock: AbstractContextManager[object]
    if isinstance(there.made, FolderPlace):
        lock = replay_lock(there.made.store.path, "billing")  # the job's as well
    else:
        assert isinstance(changer, ClusterChanger)
        lock = changer._trail("billing").locked()
    with lock:
        got = there.otto.post(REPLAY, fields)
    assert (got.status, "being replayed" in got.text) == (400, True)
    assert there.copies() == []


def entry(phase: str, run: str) -> TrailEntry:
    return TrailEntry(phase=phase, at_ms=1, run_id=run, by="otto", to="t")  # type: ignore[arg-type]


def test_the_trail_knows_what_went_and_what_may_have(tmp_path: Path) -> None:
    trail = ReplayTrail(tmp_path / "sub" / "trail.jsonl", "billing")
    assert trail.read() == {}
    went, cut, failed = (DeadLetterPlace("b", 0, number, "id") for number in range(3))
    with trail.locked() as writer:
        writer.begin((each, entry("begun", "1")) for each in (went, cut, failed))
        writer.note(went, entry("done", "1"))
        writer.note(failed, entry("failed", "1"))
        with pytest.raises(ReplayRunningError), trail.locked():
            pass
        writer.begin([(went, entry("begun", "2"))])
        writer.note(went, entry("failed", "2"))
    path = tmp_path / "sub" / "trail.jsonl"
    path.write_bytes(path.read_bytes() + b'{"letter": ["b", 0')  # a crash
    with trail.locked() as writer:
        writer.note(cut, entry("failed", "3"))
    found = {place: each.phase for place, each in trail.read().items()}
    assert found == {went: "done", cut: "begun", failed: "failed"}
    assert trail_of(tmp_path, "billing").read() == {}
