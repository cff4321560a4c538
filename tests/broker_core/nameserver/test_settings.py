from __future__ import annotations

from pathlib import Path

import pytest

from rocketpy.broker_core.java_settings import SettingError
from rocketpy.broker_core.nameserver.settings import NameServerSettings


def test_a_file_of_apaches_is_read(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text(
        "# the name server\nlistenPort=19876\nbindAddress = 127.0.0.2\n"
        "orderMessageEnable=TRUE\nserverWorkerThreads=8\n"
    )
    settings = NameServerSettings.read(path)
    assert (settings.listen_port, settings.bind_address) == (19876, "127.0.0.2")
    assert settings.order_message_enable
    assert settings.config_store_path == str(path)
    assert settings.warnings() == []
    assert settings.properties()["serverWorkerThreads"] == "8"


def test_what_nobody_knows_is_told_with_the_nearest_name() -> None:
    settings = NameServerSettings().changed({"listenport": "1", "colour": "blue"})
    assert settings.warnings() == [
        "nothing has the property listenport; is listenPort meant?",
        "nothing has the property colour",
    ]


def test_what_cannot_be_had_is_told_only_if_it_is_wanted() -> None:
    settings = NameServerSettings().changed({"supportActingMaster": "false"})
    assert settings.warnings() == []
    (warning,) = settings.changed({"supportActingMaster": "true"}).warnings()
    assert warning.startswith("supportActingMaster=true: ")


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("listenPort", "many", "give a whole number"),
        ("listenPort", "65536", "give a port from 1 to 65535"),
        ("enableTopicList", "yes", "give true or false"),
        ("scanNotActiveBrokerInterval", "0", "give a number above 0"),
        ("serverChannelMaxIdleTimeSeconds", "-1", "give a number above 0"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, value: str, remedy: str) -> None:
    with pytest.raises(SettingError, match=f"^{name}={value}: {remedy}"):
        NameServerSettings().changed({name: value})


def test_settings_are_shown_by_apaches_names() -> None:
    shown = NameServerSettings(kv_config_path="kv.json").properties()
    assert shown["kvConfigPath"] == "kv.json"
    assert shown["returnOrderTopicConfigToBroker"] == "true"
    assert NameServerSettings().changed(shown).properties() == shown


def test_paths_may_not_be_changed_while_it_runs() -> None:
    settings = NameServerSettings().changed({"configBlackList": "listenPort"})
    assert {"kvConfigPath", "configBlackList", "listenPort"} <= settings.unchangeable()
