r"""Texts of settings as Java's `Properties` reads and writes them: `namesrv.conf`, `broker.conf`.

A line is `name=value`; a colon or blanks may stand for the sign. Lines that begin with `#` or `!`
are comments. A backslash at the end of a line continues it, elsewhere it begins `\t`, `\n`, `\r`,
`\f`, `\u00e4`, or stands before a character that is meant as it is. The last of several lines with
one name counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_SEPARATOR = re.compile(r"(?P<name>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.S)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPECIAL = re.compile(r"[\\\t\n\r\f]|[^ -~]")
_NAME_SPECIAL = re.compile(r"[\\\t\n\r\f =:#!]|[^ -~]")
_ESCAPES = {character: letter for letter, character in _CONTROLS.items()}


def parse(text: str) -> dict[str, str]:
    r"""Return the values by name, in the order of the text.

    Raises:
        ValueError: a `\u` is not followed by four hexadecimal digits.
    """
    found = {}
    for line in _logical_lines(text):
        separator = _SEPARATOR.match(line)
        assert separator is not None  # it matches the empty text
        found[_unescape(separator["name"])] = _unescape(line[separator.end() :])
    return found


def format(values: Mapping[str, str]) -> str:
    """Return values as text, a line each; only ASCII, so that no encoding is to be agreed on."""
    return "".join(
        f"{_NAME_SPECIAL.sub(_escape, name)}={_escape_value(value)}\n"
        for name, value in values.items()
    )


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines that are no comments and not empty, with what continues them."""
    continued: str | None = None
    for line in _LINE_END.split(text):
        stripped = line.lstrip(_BLANKS)
        if continued is None and (not stripped or stripped[0] in "#!"):
            continue
        whole = stripped if continued is None else continued + stripped
        # An even number of backslashes at the end are backslashes.
        if (len(stripped) - len(stripped.rstrip("\\"))) % 2:
            continued = whole[:-1]
        else:
            continued = None
            yield whole
    if continued is not None:
        yield continued


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_meaning, text)
    # Characters beyond 16 bits are written as two halves.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _meaning(escape: re.Match[str]) -> str:
    digits, character = escape.groups()
    if digits is not None:
        return chr(int(digits, 16))
    if character == "u":
        raise ValueError(rf"\u without four hexadecimal digits in {escape.string!r:.60}")
    return _CONTROLS.get(character, character)


def _escape_value(value: str) -> str:
    """Escape a value; a blank at its begin would be taken for a part of the sign."""
    escaped = _SPECIAL.sub(_escape, value)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if " " <= character <= "~":
        return f"\\{character}"
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))
