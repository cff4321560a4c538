"""`rocketpy --credentials FILE --tls FILE …`: the way into protected clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import Run

from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.net.self_signed import self_signed

SECRET = "s3cret-of-the-reader"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[LocalBroker]:
    made = self_signed()
    (folder / "key.pem").write_text(made.key_pem)
    (folder / "cert.pem").write_text(made.certificate_pem)
    settings = {
        "tls.server.keyPath": str(folder / "key.pem"),
        "tls.server.certPath": str(folder / "cert.pem"),
    }
    with local_broker(topics={"orders": 3}, settings=settings) as running:
        yield running


def test_a_file_says_whom_to_trust(rocketpy_: Run, server: LocalBroker, folder: Path) -> None:
    file = folder / "tls.properties"
    file.write_text(f"tls.client.trustCertPath={folder / 'cert.pem'}\n")
    address = f"rocketmq://{server.namesrv_addr}"
    trusting = rocketpy_("--tls", file, "topic", "list", address)
    assert (trusting.exit_code, "orders" in trusting.output) == (0, True)
    strict = rocketpy_("--tls", "on", "topic", "list", address)
    assert strict.exit_code == 2
    assert "an authority that is not trusted" in strict.stderr


def test_the_environment_says_it_where_no_option_does(
    rocketpy_: Run, server: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKETPY_TLS", "on")
    address = f"rocketmq://{server.namesrv_addr}"
    assert rocketpy_("topic", "list", address).exit_code == 2
    assert rocketpy_("--tls", "off", "topic", "list", address).exit_code == 0


def test_a_file_without_a_secret_is_told_without_what_is_there(
    rocketpy_: Run, server: LocalBroker, tmp_path: Path
) -> None:
    file = tmp_path / "reader.yml"
    file.write_text(f"accessKey: reader\nsecret: {SECRET}\n")
    found = rocketpy_("--credentials", file, "topic", "list", f"rocketmq://{server.namesrv_addr}")
    assert found.exit_code == 2
    assert f"credentials from {file}: line 2 is none of accessKey" in found.stderr
    assert SECRET not in found.output + found.stderr
