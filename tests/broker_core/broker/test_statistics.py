"""What a broker counts, and what it tells of itself."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.broker_core.broker.conftest import Asking, Serve

from rocketpy.broker_core.broker.runtime_info import readable_size
from rocketpy.broker_core.broker.stats import SAMPLE_S, Span, Stats
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode

STEP_MS = SAMPLE_S * 1000
# What mqadmin printed of Apache's broker.
RECORDED = Path(__file__).parents[2] / "interop" / "mqadmin-5.5.0.json"


def names_of_apaches_broker() -> set[str]:
    """Return every name that it tells of itself, but for the one with a folder in it."""
    printed = json.loads(RECORDED.read_text("utf-8"))["brokerStatus -b {address}"]
    names = {line.partition(":")[0].strip() for line in printed.splitlines()}
    return {name for name in names if not name.startswith("commitLogDiskRatio_")}


def test_rates_are_those_between_samples() -> None:
    clock = ManualClock()
    stats = Stats(clock.now_ms)
    for _ in range(6):
        clock.advance(STEP_MS)
        stats.sent("orders", 20, 2000)
        stats.sent("orders", 10, 1000)
        stats.given("readers", "orders", 10, 1000)
        stats.sample()
    found = stats.find("TOPIC_PUT_NUMS", "orders")
    assert found is not None
    assert found[0] == Span(180, 3.0, 15.0)
    assert stats.find("TOPIC_PUT_SIZE", "orders") == (Span(18_000, 300.0, 1500.0),) * 3
    assert stats.given_tps("readers", "orders") == 1.0
    assert stats.rates(stats.now()[0])[:2] == (3.0, 3.0)
    found = stats.find("BROKER_PUT_NUMS", "whatever")
    assert found is not None
    assert found[0].total == 180


def test_an_hour_and_a_day_are_kept_apart() -> None:
    clock = ManualClock()
    stats = Stats(clock.now_ms)
    for _ in range(720):  # two hours
        clock.advance(STEP_MS)
        stats.sent("orders", 1, 10)
        stats.sample()
    found = stats.find("TOPIC_PUT_NUMS", "orders")
    assert found is not None
    assert [span.total for span in found] == [6, 360, 720]


def test_what_nobody_counted_is_not_there() -> None:
    stats = Stats(ManualClock().now_ms)
    assert stats.find("TOPIC_PUT_NUMS", "orders") is None
    assert stats.find("NO_SUCH_STATISTIC", "orders") is None


def test_what_was_just_counted_is_there_before_the_next_sample() -> None:
    stats = Stats(ManualClock().now_ms)
    stats.sent("orders", 5, 1)
    assert stats.find("TOPIC_PUT_NUMS", "orders") == (Span(5, 0.5, 5.0),) * 3


def test_midnight_moves_the_counts_of_the_morning() -> None:
    noon, days = datetime(2026, 11, 17, 12), [0]
    stats = Stats(lambda: int((noon + timedelta(days=days[-1])).timestamp() * 1000))
    for day in range(3):
        days.append(day)
        stats.sent("orders", 10, 1)
        stats.given("readers", "orders", 5, 1)
        stats.sample()
    assert stats.this_morning == (30, 15)
    assert stats.yesterday_morning == (20, 10)


def test_sums_of_the_broker_outlive_a_topic() -> None:
    stats = Stats(ManualClock().now_ms)
    stats.sent("orders", 10, 100)
    stats.given("readers", "orders", 5, 50)
    stats.sent_back("readers", "orders")
    stats.forget_topic("orders")
    stats.sent("orders", 1, 10)
    sent, given = stats.now()
    assert (sent.messages, sent.size_bytes, given.messages) == (11, 110, 5)
    assert stats.find("SNDBCK_PUT_NUMS", "orders@readers") is None


def test_every_name_of_apaches_broker_is_told(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        for _ in range(3):
            await asking.send("orders", b"hello")
        await asking.pull("orders", 0)
        answer = await asking.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        table = json.loads(bytes(answer.body))["table"]
        assert table.keys() >= names_of_apaches_broker()
        assert all(isinstance(value, str) for value in table.values())
        assert table["msgPutTotalTodayNow"] == table["putMessageTimesTotal"] == "3"
        assert table["msgGetTotalTodayNow"] == "3"
        assert int(table["commitLogMaxOffset"]) == asking.broker.store.log_end()
        assert float(table["putMessageAverageSize"]) * 3 == int(table["commitLogMaxOffset"])
        assert len(table["putTps"].split(" ")) == 3
        assert int(table["earliestMessageTimeStamp"]) > 0

    serve(scenario)


def test_statistics_are_told_by_name_and_key(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"hello")
        code = RequestCode.VIEW_BROKER_STATS_DATA
        fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "orders"}
        found = json.loads(bytes((await asking.ask(code, fields)).body))
        assert found["statsMinute"] == {"avgpt": 1.0, "sum": 1, "tps": 0.1}
        asking.broker.stats.sample()
        found = json.loads(bytes((await asking.ask(code, fields)).body))
        assert found["statsDay"]["sum"] == 1
        fields["statsKey"] = "nosuch"
        refused = await asking.ask(code, fields)
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert refused.remark == "The stats <TOPIC_PUT_NUMS> <nosuch> not exist"

    serve(scenario)


def test_a_master_without_slaves_tells_so(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        status = json.loads(bytes((await asking.ask(RequestCode.GET_BROKER_HA_STATUS)).body))
        assert (status["master"], status["inSyncSlaveNums"]) == (True, 0)
        assert status["haConnectionInfo"] == []
        epochs = await asking.ask(RequestCode.GET_BROKER_EPOCH_CACHE)
        assert epochs.remark == "this request only for controllerMode "
        delays = await asking.ask(RequestCode.GET_ALL_DELAY_OFFSET)
        assert delays.code == ResponseCode.SUCCESS

    serve(scenario)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (252 << 30, "252.0 GiB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert readable_size(size) == text


def test_what_waits_for_its_time_is_told_by_level_and_by_topic(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"hello", i="UNIQ_KEY\x01U1\x02DELAY\x0118\x02")
        await asking.send("orders", b"hello", i="UNIQ_KEY\x01U2\x02TIMER_DELAY_SEC\x013600\x02")
        answer = await asking.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        table = json.loads(bytes(answer.body))["table"]
        levels = {name: text for name, text in table.items() if "scheduleMessage" in name}
        assert levels == {"scheduleMessageOffset_18": "0,1"}
        timed = json.loads(bytes((await asking.ask(RequestCode.GET_TIMER_METRICS)).body))
        assert timed["timingCount"]["orders"]["count"] == 1

    serve(scenario)
