"""Messages sent from the console: as they were typed, once, to a folder and to a broker."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.console.shop import SCRIPT, shop, watched
from tests.console.visiting import Visitor, audited, hidden_fields, visiting

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.console.answers import MessageQuestion, StoredMessage
from rocketpy.console.changes.sending import MOST_BODY, body_of, properties_of
from rocketpy.console.place import WatchedPlace

SEND = "/0/change/send"


class There(NamedTuple):
    """A place that is changed by an operator."""

    place: WatchedPlace
    otto: Visitor
    folder: Path

    def newest(self) -> StoredMessage:
        return self.place.newest(MessageQuestion(topic="orders")).messages[0]


@pytest.fixture(scope="module", params=["folder", "ours"])
def there(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[There]:
    folder = tmp_path_factory.mktemp("shop")
    with shop(str(request.param), folder / "store") as made:
        place = watched(made)
        with visiting(folder, place) as visitors:
            yield There(place, visitors["otto"], folder)


def test_a_message_is_stored_as_it_was_typed(there: There) -> None:
    fields = {
        "topic": "orders",
        "body": f"{SCRIPT}\r\n two",
        "tag": "paid",
        "keys": "  a   b ",
        "properties": "region = eu\r\n\r\nnote=a=b",
        "queue": "1",
    }
    got = there.otto.submit(SEND, fields)
    shown = there.otto.follow(got).text
    assert "Done." in shown
    assert "in queue 1 at offset" in shown
    found = there.newest()
    assert found.body == f"{SCRIPT}\n two".encode()
    assert (found.tags, found.keys, found.queue_id) == ("paid", ("a", "b"), 1)
    assert found.properties["region"] == " eu"
    assert found.properties["note"] == "a=b"
    said = (there.folder / "audit.jsonl").read_text()
    assert SCRIPT not in said
    assert audited(there.folder)[-2]["parameters"]["body_characters"] == len(fields["body"])


def test_bytes_are_given_as_base64(there: There) -> None:
    text = base64.b64encode(bytes(range(256))).decode()
    got = there.otto.submit(SEND, {"topic": "orders", "body": text, "written": "base64"})
    assert "Done." in there.otto.follow(got).text
    assert there.newest().body == bytes(range(256))


def test_a_message_that_waits_is_told_to_wait(there: There) -> None:
    before = there.newest()
    got = there.otto.submit(SEND, {"topic": "orders", "body": "later", "level": "18"})
    assert "waits for its time" in there.otto.follow(got).text
    assert there.newest() == before


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"topic": "orderz"}, "orderz"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "SCHEDULE_TOPIC_XXXX"),
        ({"written": "base64", "body": "???"}, "it is no base64"),
        ({"properties": "no value"}, "give NAME=VALUE"),
        ({"properties": "a=1\na=2"}, "it is given twice"),
        ({"queue": "77"}, "77"),
        ({"queue": "-1"}, "give a number"),
        ({"level": "x"}, "give a number"),
    ],
)
def test_what_cannot_be_sent_is_told_in_the_form_and_what_was_typed_is_kept(
    fields: dict[str, str], says: str, there: There
) -> None:
    before = there.newest()
    given = {"topic": "orders", "body": "typed with care </textarea>", **fields}
    got = there.otto.submit(SEND, given)
    assert (got.status, says in got.text) == (400, True), got.text
    if "body" not in fields:
        assert "typed with care &lt;/textarea&gt;" in got.text
    assert there.newest() == before


def test_a_second_click_sends_nothing(there: There) -> None:
    hidden = hidden_fields(there.otto.get(SEND).text)
    fields = {**hidden, "topic": "orders", "body": "once"}
    first = there.otto.post(SEND, fields)
    found = there.newest()
    assert there.otto.post(SEND, fields).location == first.location
    assert there.newest() == found


def test_bodies_are_bounded_and_properties_are_lines() -> None:
    with pytest.raises(MessageRefusedError, match="rocketpy send takes more"):
        body_of("x" * (MOST_BODY + 1), "text")
    with pytest.raises(MessageRefusedError, match="no text"):
        body_of("\ud800", "text")
    assert body_of(" YWJj \n", "base64") == b"abc"
    assert properties_of("") == {}
    assert properties_of("a=\n b = c ") == {"a": "", "b": " c "}
