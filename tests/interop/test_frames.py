"""Frames that Apache's classes make are read here, and ours are read there."""

from __future__ import annotations

import random

from tests.interop.protocol_tool import ProtocolTool, read, shown

from rocketpy.broker_core.protocol.command import (
    ONEWAY,
    RESPONSE,
    HeaderKind,
    RemotingCommand,
    decode,
    encode,
)

KIND_NAMES = {HeaderKind.JSON: "JSON", HeaderKind.BINARY: "ROCKETMQ"}
TEXTS = ["", "a", "topic", 'it\'s "so" \\ {0:1}', "\x01\x02\n\t", "é中😀", "x" * 5000]
BODIES = [b"", b"{}", bytes(range(256)), b"\0" * 5000]
COMMANDS = 60


def some_commands() -> list[RemotingCommand]:
    chosen = random.Random(1)
    return [
        RemotingCommand(
            chosen.choice([0, 1, 11, 310, 32767]),
            {chosen.choice(TEXTS[1:-1]): chosen.choice(TEXTS) for _ in range(chosen.randrange(4))},
            chosen.choice(BODIES),
            opaque=chosen.choice([0, 1, -1, (1 << 31) - 1, -(1 << 31)]),
            flag=chosen.choice([0, RESPONSE, ONEWAY, RESPONSE | ONEWAY]),
            remark=chosen.choice([None, *TEXTS[1:]]),
            kind=chosen.choice([*HeaderKind]),
        )
        for _ in range(COMMANDS)
    ]


def test_a_frame_of_apaches_says_here_what_it_says_there(protocol_tool: ProtocolTool) -> None:
    for command in some_commands():
        fields = [shown(text) for pair in command.fields.items() for text in pair]
        (frame,) = protocol_tool.ask(
            *("encode", KIND_NAMES[command.kind], str(command.code), str(command.opaque)),
            *(str(command.flag), shown(command.remark), shown(bytes(command.body) or None)),
            *fields,
        )
        found = decode(memoryview(read(frame))[4:])
        assert found.language == "JAVA"
        assert said(found) == said(command)


def test_a_frame_of_ours_says_there_what_it_says_here(protocol_tool: ProtocolTool) -> None:
    for command in some_commands():
        kind, code, opaque, flag, version, language, remark, body, *fields = protocol_tool.ask(
            "decode", shown(encode(command))
        )
        assert (kind, int(code), int(opaque), int(flag), int(version), language) == (
            *(KIND_NAMES[command.kind], command.code, command.opaque, command.flag),
            *(command.version, command.language),
        )
        assert remark == shown(command.remark)
        assert body in {shown(bytes(command.body)), shown(bytes(command.body) or None)}
        expected = {
            shown(name): shown(value if value or command.kind == HeaderKind.JSON else None)
            for name, value in command.fields.items()
        }  # in binary, Apache has null for a text that is empty
        assert dict(zip(fields[::2], fields[1::2], strict=True)) == expected


def said(command: RemotingCommand) -> tuple[object, ...]:
    return (
        *(command.code, command.fields, bytes(command.body), command.opaque, command.flag),
        *(command.remark, command.kind),
    )
