"""A block of Python, run statement by statement and held to what it says it shows.

    store.send("orders", "1 euro").queue_id          # → 0
    print("a", "b")
    # → a b

`# →` behind a statement, or on the lines below it, is what it prints; of one that prints nothing,
the repr of its value (of an assignment, what was assigned); of one that raises, `Error: message`.
`…` stands for anything.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
import tokenize
from typing import Any

MARK = "# →"


class WrongOutputError(AssertionError):
    """Is raised when a page shows something else than what its program does."""


def compare(shown: str, expected: str, where: str) -> None:
    """Raise unless the two are the same, but for blanks at the ends of lines."""
    clean = "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())
    pattern = ".*?".join(re.escape(part) for part in expected.split("…"))
    if re.fullmatch(pattern, clean, re.DOTALL) is None:
        raise WrongOutputError(f"{where} shows\n{expected}\nbut it is\n{clean}")


def run_python(text: str, namespace: dict[str, Any], *, name: str, line: int) -> str:
    """Run a block in a namespace; return what it printed. Lines are counted as in the page."""
    source = "\n" * (line - 1) + text
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    statements = ast.parse(source, name).body
    expected = _expectations(source, statements)
    printed = []
    for statement in statements:
        wanted = expected.get(statement)
        where = f"{name}:{statement.lineno}"
        output, value = _run(statement, namespace, name, wanted)
        printed.append(output)
        if wanted is not None:
            compare(output or value, wanted, where)
    return "".join(printed)


def _expectations(source: str, statements: list[ast.stmt]) -> dict[ast.stmt, str]:
    """Find for each statement the text that it is to show."""
    found: dict[ast.stmt, list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.string.startswith(MARK):
            above = [each for each in statements if each.lineno <= token.start[0]]
            text = token.string.removeprefix(MARK)
            found.setdefault(above[-1], []).append(text.removeprefix(" ").rstrip())
    return {statement: "\n".join(lines) for statement, lines in found.items()}


def _run(
    statement: ast.stmt, namespace: dict[str, Any], name: str, wanted: str | None
) -> tuple[str, str]:
    """Run one statement; return what it printed, and the repr of its value."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            value = _value(statement, namespace, name)
        except Exception as error:
            kind = type(error).__name__
            if wanted is None or not wanted.startswith(f"{kind}:"):
                raise
            return "", f"{kind}: {error}"
    return output.getvalue(), repr(value)


def _value(statement: ast.stmt, namespace: dict[str, Any], name: str) -> object:
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), name, "eval"), namespace)
    exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    if isinstance(statement, ast.Assign):
        return eval(ast.unparse(statement.targets[0]), namespace)
    return None
