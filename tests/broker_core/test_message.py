"""Values of a message: hosts, ids, properties, keys."""

from __future__ import annotations

import os
import re

import pytest

from rocketpy.broker_core.errors import MessageNotFoundError, MessageRefusedError
from rocketpy.broker_core.message import (
    Host,
    Message,
    UniqueKeys,
    join_keys,
    join_properties,
    offset_id,
    parse_offset_id,
    split_properties,
)

V4, V6 = Host("127.0.0.1", 10911), Host("::1", 10911)


def test_an_ipv4_host_takes_eight_bytes() -> None:
    assert V4.packed() == bytes.fromhex("7f00000100002a9f")  # address, port


def test_an_ipv6_host_takes_twenty_bytes() -> None:
    assert V6.packed() == bytes(15) + b"\x01" + bytes.fromhex("00002a9f")


@pytest.mark.parametrize("host", [V4, V6, Host("255.255.255.255", 65535), Host("fe80::1", 0)])
def test_a_host_is_read_back(host: Host) -> None:
    assert Host.unpack(host.packed()) == host


@pytest.mark.parametrize(("host", "text"), [(V4, "127.0.0.1:10911"), (V6, "[::1]:10911")])
def test_a_host_is_written_with_its_port(host: Host, text: str) -> None:
    assert str(host) == text


def test_an_offset_id_is_host_port_and_place_in_hexadecimal() -> None:
    assert offset_id(V4, 43078) == "7F00000100002A9F000000000000A846"


@pytest.mark.parametrize("host", [V4, V6])
def test_an_offset_id_is_parsed_again(host: Host) -> None:
    assert parse_offset_id(offset_id(host, 12345)) == (host, 12345)


@pytest.mark.parametrize("wrong", ["", "7F", "x" * 32, "7F00000100002A9F000000000000A84", "0" * 34])
def test_an_offset_id_of_another_form_is_refused_with_a_hint(wrong: str) -> None:
    with pytest.raises(MessageNotFoundError, match=r"32 .* hexadecimal digits.*query\(\)"):
        parse_offset_id(wrong)


def test_a_message_tells_its_id() -> None:
    message = Message(topic="t", stored_body=b"")
    assert message.msg_id == "7F00000100002A9F" + "0" * 16


def test_properties_are_joined_each_with_its_end() -> None:
    assert join_properties({"a": "1", "b": ""}) == b"a\x011\x02b\x01\x02"


@pytest.mark.parametrize("text", [b"a\x011\x02b\x012\x02", b"a\x011\x02b\x012"])
def test_the_last_end_may_be_missing(text: bytes) -> None:
    assert split_properties(text) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", {}),
        (b"\x02\x02", {}),
        (b"\x01v\x02a\x01w\x02", {"a": "w"}),  # no name
        (b"alone\x02a\x01w\x02", {"a": "w"}),  # no value
        (b"a\x01\x02", {"a": ""}),
        (b"a\x011\x02a\x012\x02", {"a": "2"}),  # of repeated names the last one counts
        (b"a\x01\xff\x02", {"a": "�"}),
        ("é\x01🚀\x02".encode(), {"é": "🚀"}),
    ],
)
def test_odd_property_strings_are_read_as_far_as_they_make_sense(
    text: bytes, found: dict[str, str]
) -> None:
    assert split_properties(text) == found


@pytest.mark.parametrize("name", ["", "__CRC32#"])
def test_an_empty_or_reserved_property_name_is_refused(name: str) -> None:
    with pytest.raises(MessageRefusedError, match=r"a name is empty or .* reserved"):
        join_properties({name: "x"})


@pytest.mark.parametrize("mark", ["\x01", "\x02"])
@pytest.mark.parametrize("place", ["name", "value"])
def test_separators_inside_a_property_are_refused(mark: str, place: str) -> None:
    properties = {"a" + mark: "x"} if place == "name" else {"a": "x" + mark}
    with pytest.raises(MessageRefusedError, match="0x01 and 0x02 separate properties"):
        join_properties(properties)


def test_separators_that_would_make_up_for_each_other_are_refused() -> None:
    with pytest.raises(MessageRefusedError):
        join_properties({"a\x01b\x02c": "x"})


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="not valid Unicode"):
        join_properties({"a": "\ud800"})


def test_keys_of_a_list_are_joined_by_blanks() -> None:
    assert join_keys(["a", "b"]) == "a b"


def test_keys_of_a_string_stay_as_they_are() -> None:
    assert join_keys("a b") == "a b"


def test_a_blank_inside_a_listed_key_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="key 'a b': a blank separates keys"):
        join_keys(["a b"])


def test_unique_keys_have_apaches_form() -> None:
    key = UniqueKeys("192.0.2.1").next()
    assert re.fullmatch("[0-9A-F]{32}", key)
    assert key.startswith(f"C0000201{os.getpid() & 0xFFFF:04X}")


def test_unique_keys_are_unique() -> None:
    keys = UniqueKeys()
    assert len({keys.next() for _ in range(10_000)}) == 10_000


def test_many_unique_keys_at_once_are_as_unique_and_of_the_same_form() -> None:
    keys = UniqueKeys()
    found = [*keys.many(10_000), keys.next(), *keys.many(1), *keys.many(0)]
    assert len({*found}) == len(found) == 10_002
    assert all(re.fullmatch("[0-9A-F]{32}", key) for key in found)


def test_two_makers_of_unique_keys_share_none() -> None:
    first, second = UniqueKeys(), UniqueKeys()
    assert not {first.next() for _ in range(100)} & {second.next() for _ in range(100)}


def test_a_forked_process_makes_other_unique_keys() -> None:
    keys = UniqueKeys()
    before = keys.next()[:20]
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, keys.next()[:20].encode())
        os._exit(0)
    os.waitpid(child, 0)
    after = os.read(read_end, 20).decode()
    os.close(read_end)
    os.close(write_end)
    assert after[8:12] == f"{child & 0xFFFF:04X}"
    assert after[12:] != before[12:]
