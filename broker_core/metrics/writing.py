"""One family in Prometheus' text format, written from rows at once.

It is what prometheus_client writes of the same family, byte for byte, which a test compares; that
one takes some ten times as long, as it looks at each label of each series anew. While a broker of
this process is scraped, its loop has to share the interpreter with the writing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from prometheus_client.utils import floatToGoString

from rocketpy.broker_core.metrics.families import Family

_Told = TypeVar("_Told")
_SOME = 100  # series written at a stretch: some tenths of a millisecond


def block(family: Family[_Told], told: Iterable[_Told], names: dict[str, str]) -> str:
    """Return the series of a family, empty if there are none.

    `names` keeps values of labels as they are written, from one family of a text to the next.
    """
    lines = "".join(_lines(family, told, names))
    name = family.name
    return f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n{lines}" if lines else ""


def _lines(family: Family[_Told], told: Iterable[_Told], names: dict[str, str]) -> Iterator[str]:
    places = sorted(range(len(family.labels)), key=family.labels.__getitem__)
    form = ",".join(f"{family.labels[place]}=%s" for place in places)
    begin = f"{family.name}{{{form}}} %s\n" if form else f"{family.name} %s\n"
    count = 0
    for each in told:
        for values, number in family.rows(each):
            count += 1
            if count % _SOME == 0:
                # A thread that computes keeps the interpreter for 5 ms at a time; the loop of a
                # broker in this process would wait for it at each of its turns.
                time.sleep(0)
            quoted = [names.get(values[place]) or _quoted(values[place], names) for place in places]
            written = floatToGoString(number)  # type: ignore[no-untyped-call]
            yield begin % (*quoted, written)


def _quoted(value: str, names: dict[str, str]) -> str:
    escaped = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    names[value] = quoted = f'"{escaped}"'
    return quoted
