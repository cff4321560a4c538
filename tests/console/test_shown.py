"""How values are written on pages."""

from __future__ import annotations

import pytest

from rocketpy.console.answers import LagSample, StoredMessage
from rocketpy.console.web import shown


def message(body: bytes, size: int | None = None) -> StoredMessage:
    return StoredMessage(
        topic="t",
        broker="b",
        queue_id=0,
        queue_offset=0,
        body=body,
        body_size=len(body) if size is None else size,
        born_ms=0,
        stored_ms=0,
        born_host="",
        store_host="",
        msg_id="",
    )


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (b'{"a": [1]}', ("json", "text", "hex")),
        (b"[1, 2", ("text", "hex")),
        (b"[" * 100_000, ("text", "hex")),
        ("grüezi".encode(), ("text", "hex")),
        (b"", ("text", "hex")),
        (b"\xff\xfe", ("hex",)),
        (bytes(64), ("hex",)),
    ],
)
def test_a_body_is_shown_as_what_it_is(body: bytes, kinds: tuple[str, ...]) -> None:
    found = shown.shown_body(message(body), None)
    assert (found.kinds, found.kind) == (kinds, kinds[0])
    assert not found.is_cut or len(body) > 4096


def test_a_body_that_was_cut_inside_of_a_character_is_still_text() -> None:
    cut = "grüezi ü".encode()[:-1]
    found = shown.shown_body(message(cut, 5000), None)
    assert (found.kind, found.text, found.is_cut) == ("text", "grüezi ", True)


def test_characters_that_cannot_be_seen_get_signs() -> None:
    assert shown.visible("a\x1b[31m\x00b\n") == "a␛[31m␀b\n"


@pytest.mark.parametrize("time_ms", [-(1 << 62), 1 << 62])
def test_a_time_that_cannot_be_is_shown_as_its_number(time_ms: int) -> None:
    assert shown.exact(time_ms) == f"{time_ms} ms"


def test_a_preview_is_one_short_line() -> None:
    assert shown.preview(message(b"two\n lines")) == "two lines"
    assert len(shown.preview(message(b"x" * 10_000))) < 120
    assert shown.preview(message(b"\xff" * 100)).startswith("ff ff")


def test_curves_go_through_what_was_seen() -> None:
    samples = [
        LagSample(0, 0, 10, given=0, pending=0, disk_used=0.25),
        LagSample(1000, 50, 5, given=2000, pending=0, disk_used=0.25),
        LagSample(1000, 50, 5, given=2000, pending=0, disk_used=0.25),
        LagSample(2000, 50, 0, given=5, pending=0, disk_used=0.5),  # the count began anew
    ]
    found = {each.name: each for each in shown.curves(samples)}
    assert {name: each.values for name, each in found.items()} == {
        "Unread messages": ("10", "0", "10"),
        "Messages in": ("50/s", "0/s", "50/s"),
        "Messages out": ("2,000/s", "0/s", "2,000/s"),
        "Disk used": ("25%", "50%", "50%"),
    }
    assert found["Messages in"].curve.span_ms == 1000
    assert shown.curves(samples[:1]) == []


def test_curves_of_what_there_is_not_are_left_out() -> None:
    samples = [LagSample(number * 1000, 0, 0, dead_letters=number) for number in range(3)]
    names = [each.name for each in shown.curves(samples)]
    assert names == ["Unread messages", "Messages in", "Dead letters"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (None, shown.UNKNOWN)]
)
def test_sizes_have_units(value: int | None, text: str) -> None:
    assert shown.size(value) == text
