"""Filters and messages made at random: every operator, and texts that are nearly numbers."""

from __future__ import annotations

from random import Random

NAMES = ("a", "b", "region", "$x_1", "TAGS", "missing")
TEXTS = (
    *("", "0", "1", "5", "-5", "+5", "007", " 5 ", "5.", ".5", "5.5", "-0.0", "0.0", "1e3", "1E-3"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "99999999999999999999", "1e400", "1e-400"),
    *("NaN", "-NaN", "Infinity", "-Infinity", "nan", "inf", "5f", "5d", "5L", "0x10", "0x1p3"),
    *(
        "0x1p3f",
        "-0x.8p1",
        "\u0663",
        "\uff11\uff12",
        "\U0001d7cf",
        "1_000",
        "--5",
        "+",
        "-",
        ".",
        "e5",
        "5e",
        "true",
    ),
    *("TRUE", "True", "false", "eu", "EU", "us-east", "it's", "été", "🚀 go", "\t7\n", "x"),
)
NUMBERS = (
    *("0", "1", "5", "007", "5L", "2147483647", "2147483648", "9223372036854775807", "5.5", "5."),
    *(".5", "1e3", "1E-3", "1.7976931348623157e308", "4.9e-324"),
)
_ORDERS = ("<", "<=", ">", ">=")
_SEARCHES = ("CONTAINS", "STARTSWITH", "ENDSWITH")


def message(random: Random) -> dict[str, str]:
    """Return the properties of a message."""
    return {name: random.choice(TEXTS) for name in NAMES[:-1] if random.random() < 0.7}


def condition(random: Random, depth: int = 3) -> str:
    """Return a filter that is mostly legal."""
    if depth and random.random() < 0.5:
        return _combined(random, depth - 1)
    name = random.choice(NAMES)
    no = random.choice(("", "", "NOT "))
    kind = random.randrange(9)
    if kind == 0:
        return f"{_operand(random)} {random.choice(('=', '<>'))} {_operand(random)}"
    if kind == 1:
        return f"{name} {random.choice(('=', '<>'))} {_quoted(random)}"
    if kind == 2:
        return f"{_numeric(random)} {random.choice(_ORDERS)} {_numeric(random)}"
    if kind == 3:
        low, high = sorted((random.randint(-9, 9), random.randint(-9, 9)))
        return f"{name} {no}BETWEEN {low} AND {high}"
    if kind == 4:
        texts = ", ".join(_quoted(random) for _ in range(random.randint(1, 6)))
        return f"{name} {no}IN ({texts})"
    if kind == 5:
        return f"{name} IS {no}NULL"
    if kind == 6:
        return f"{_operand(random)} {no}{random.choice(_SEARCHES)} {_quoted(random)}"
    if kind == 7:
        return random.choice((name, "TRUE", "FALSE", "NULL", f"{name} = TRUE", f"{name} = false"))
    return f"{name} {random.choice(('=', '<>', *_ORDERS))} {random.choice(NUMBERS)}"


def _combined(random: Random, depth: int) -> str:
    one, other = condition(random, depth), condition(random, depth)
    forms = (
        f"{one} AND {other}",
        f"{one} or {other}",
        f"({one}) AND ({other})",
        f"({one} OR {other}) AND {condition(random, depth)}",
        f"NOT ({one})",
        f"not {one}",
        f"({one}) = ({other})",
        f"({one}) IS NULL",
        f"({one}) <> {random.choice(('TRUE', 'FALSE'))}",
        f"-({one}) IS NULL AND {other}",
    )
    return random.choice(forms)


def _operand(random: Random) -> str:
    return random.choice((_numeric(random), _quoted(random), random.choice(NAMES), "TRUE"))


def _numeric(random: Random) -> str:
    number = random.choice(NUMBERS)
    return random.choice((random.choice(NAMES), random.choice(NAMES), number, f"-{number}", "-a"))


def _quoted(random: Random) -> str:
    text = random.choice(TEXTS).replace("'", "''")
    return f"'{text}'"


def broken(random: Random) -> str:
    """Return a filter with some characters gone, doubled or strange: some are legal still."""
    text = list(condition(random))
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(text))
        odd = random.choice("'()=<>,+-.#!\"%LeN0 \n;/*é")
        text[at : at + 1] = random.choice(([], [text[at]] * 2, [text[at], odd], [odd]))
        if not text:
            return ""
    return "".join(text)
