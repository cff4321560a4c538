"""The tables of the wire are those of the code."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.project.docs_tables import names_in, tables
from tests.project.markdown_page import ROOT

from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.broker.table import HANDLERS as BROKER_HANDLERS
from rocketpy.broker_core.nameserver.table import HANDLERS as NAME_SERVER_HANDLERS
from rocketpy.broker_core.net.service import Handler
from rocketpy.broker_core.protocol.codes import OwnCode, RequestCode


@pytest.mark.parametrize(
    ("heading", "handlers"),
    [
        ("What a broker answers", BROKER_HANDLERS),
        ("What a name server answers", NAME_SERVER_HANDLERS),
    ],
)
def test_every_code_is_told_with_its_file_and_a_test(
    heading: str, handlers: Mapping[int, Handler]
) -> None:
    rows = tables("protocol.md")[heading]
    told = {int(row[0]): (*names_in(row[1]), *names_in(row[2])) for row in rows}
    assert told == {
        int(code): (_name_of(code), _file_of(handler)) for code, handler in handlers.items()
    }
    assert [int(row[0]) for row in rows] == sorted(told)
    for row in rows:
        (test,) = names_in(row[4])
        assert (ROOT / "tests" / test).exists(), test


def test_what_a_broker_asks_of_clients_are_codes_of_that_name() -> None:
    rows = tables("protocol.md")["What a broker asks of its clients"]
    for code, name, _ in rows:
        assert names_in(name) == [RequestCode(int(code)).name]


def _name_of(code: int) -> str:
    return (OwnCode if code in {*OwnCode} else RequestCode)(code).name


def _file_of(handler: Handler) -> str:
    module = handler.answer.__module__.removeprefix("rocketpy.broker_core.")
    return module.replace(".", "/") + ".py"


def test_the_settings_of_a_broker_are_those_of_the_code() -> None:
    settings = BrokerSettings().properties()
    rows = tables("broker.md")["Settings"]
    told = {names_in(name)[0]: "".join(names_in(default)) for name, default, _ in rows}
    assert list(told) == list(settings)
    assert {**told, "brokerName": settings["brokerName"]} == settings
