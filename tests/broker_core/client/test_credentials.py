from __future__ import annotations

import asyncio
import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.credentials import Credentials, CredentialsError
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.local import LocalBroker

SECRET, TOKEN = "s3cret-of-the-reader", "t0ken-of-the-reader"
GIVEN = Credentials("reader", SECRET, TOKEN)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reader.yml"
    path.write_text(f"accessKey: reader\nsecretKey: {SECRET}\n")
    path.chmod(0o600)
    return path


# --- sources --------------------------------------------------------------------------------------


def test_the_environment_has_them() -> None:
    environment = {"ROCKETPY_ACCESS_KEY": "reader", "ROCKETPY_SECRET_KEY": SECRET}
    assert Credentials.of_environment(environment) == Credentials("reader", SECRET)
    environment["ROCKETPY_SECURITY_TOKEN"] = TOKEN
    assert Credentials.of_environment(environment) == GIVEN
    assert Credentials.of_environment({}) is None


def test_the_environment_may_name_a_file(file: Path) -> None:
    found = Credentials.of_environment({"ROCKETPY_CREDENTIALS": str(file)})
    assert found == Credentials("reader", SECRET)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"ROCKETPY_ACCESS_KEY": "reader"}, "ROCKETPY_SECRET_KEY is not set"),
        ({"ROCKETPY_SECRET_KEY": SECRET}, "ROCKETPY_ACCESS_KEY is not set"),
        (
            {"ROCKETPY_CREDENTIALS": "x", "ROCKETPY_SECRET_KEY": SECRET},
            "ROCKETPY_CREDENTIALS and ROCKETPY_ACCESS_KEY are both set",
        ),
    ],
)
def test_an_environment_with_half_of_them_is_told(environment: dict[str, str], text: str) -> None:
    with pytest.raises(CredentialsError, match=text) as caught:
        Credentials.of_environment(environment)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"accessKey: reader\nsecretKey: {SECRET}\nsecurityToken: {TOKEN}\n",
        f"# of Apache's tools\n\naccessKey:  'reader'\r\nsecretKey: \"{SECRET}\"  # rotated\r\n"
        f"securityToken: {TOKEN}   # no end of line",
        f"AccessKey=reader\nSecretKey = {SECRET}\nSecurityToken={TOKEN}\n",
    ],
)
def test_a_file_has_them_as_apaches_files_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys").write_bytes(text.encode())
    assert Credentials.of_file(tmp_path / "keys") == GIVEN


@pytest.mark.parametrize("secret", ["with a blank", "a#b", "p:q=r", "ü", "it's"])
def test_a_secret_of_a_file_may_have_any_characters(tmp_path: Path, secret: str) -> None:
    (tmp_path / "plain").write_text(f"accessKey: reader\nsecretKey: {secret}\n")
    (tmp_path / "quoted").write_text(f'accessKey: reader\nsecretKey: "{secret}"\n')
    assert Credentials.of_file(tmp_path / "plain").secret_key == secret
    assert Credentials.of_file(tmp_path / "quoted").secret_key == secret


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"secretKey: {SECRET}\n", "accessKey is missing"),
        ("accessKey: reader\nsecretKey:\n", "secretKey is missing"),
        (f"accounts:\n- accessKey: reader\n  secretKey: {SECRET}\n", "line 1 is none of"),
        (f"accessKey: reader\n{SECRET}\n", "line 2 is none of"),
        (f"accessKey: reader\nsecretKey: '{SECRET}\n", "line 2 is none of"),
    ],
)
def test_a_file_that_lacks_them_is_told_without_what_is_there(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(CredentialsError, match=problem) as caught:
        Credentials.of_file(tmp_path / "keys")
    assert SECRET not in str(caught.value)
    assert str(tmp_path / "keys") in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"cannot be read \(No such file"):
        Credentials.of_file(tmp_path / "gone")
    (tmp_path / "binary").write_bytes(b"\xff" + SECRET.encode())
    with pytest.raises(CredentialsError, match="it is no text") as caught:
        Credentials.of_file(tmp_path / "binary")
    assert caught.value.__cause__ is None  # a decoder's error has all the bytes


def test_a_file_that_others_may_read_is_warned_of(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Credentials.of_file(file)
    assert not caplog.records
    file.chmod(0o640)
    Credentials.of_file(file)
    assert [each.getMessage() for each in caplog.records] == [
        f"{file}: others may read this secret; chmod 600 it"
    ]


@pytest.mark.parametrize("fields", [("", "x"), ("x", ""), ("x", None), (b"x", "y"), ("x", "y", 1)])
def test_what_is_no_key_is_refused(fields: tuple[Any, ...]) -> None:
    with pytest.raises(CredentialsError, match="credentials from arguments: give"):
        Credentials(*fields)


# --- copies ---------------------------------------------------------------------------------------


def test_a_copy_reads_its_file_again(file: Path) -> None:
    copied = pickle.dumps(Credentials.of_file(file))
    assert SECRET.encode() not in copied
    file.write_text("accessKey: reader\nsecretKey: rotated\n")
    assert pickle.loads(copied) == Credentials("reader", "rotated")
    file.unlink()
    with pytest.raises(CredentialsError, match="it has to be where this runs"):
        pickle.loads(copied)


def test_a_copy_reads_its_environment_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETPY_ACCESS_KEY", "reader")
    monkeypatch.setenv("ROCKETPY_SECRET_KEY", SECRET)
    found = Credentials.of_environment()
    copied = pickle.dumps(found)
    assert SECRET.encode() not in copied
    assert pickle.loads(copied) == found
    monkeypatch.delenv("ROCKETPY_ACCESS_KEY")
    monkeypatch.delenv("ROCKETPY_SECRET_KEY")
    with pytest.raises(CredentialsError, match=r"spark\.executorEnv"):
        pickle.loads(copied)


def test_a_copy_of_arguments_carries_them() -> None:
    assert pickle.loads(pickle.dumps(GIVEN)) == GIVEN


def test_a_cluster_travels_with_its_credentials(servers: LocalBroker, file: Path) -> None:
    copied = pickle.dumps(Cluster(servers.namesrv_addr, credentials=Credentials.of_file(file)))
    assert SECRET.encode() not in copied
    with pickle.loads(copied) as copy:
        assert copy.masters() == ["broker-a", "broker-b"]


# --- use ------------------------------------------------------------------------------------------


def test_a_cluster_without_protection_takes_signed_requests(cluster: Cluster) -> None:
    from rocketpy.broker_core.client.drafts import MessageDraft
    from rocketpy.broker_core.client.topics import ClusterTopics

    ClusterTopics(cluster).create("orders", 2)
    with Cluster(cluster.address, credentials=GIVEN) as signing:
        assert Producer(signing).send("orders", MessageDraft(body=b"one")).status == "SEND_OK"
    with rocketpy.connect(str(cluster.address), credentials=GIVEN, timeout_s=20) as client:
        assert client.send("orders", b"two").status == "SEND_OK"
        with client.consumer("readers", "orders", start="earliest") as consumer:
            got: list[bytes] = []
            while len(got) < 2:
                got += [each.body for each in consumer.poll(20)]
        assert [each.name for each in client.admin.topics.all()] == ["orders"]
    assert sorted(got) == [b"one", b"two"]


# --- the secret is nowhere ------------------------------------------------------------------------


def test_nothing_shows_the_secret(
    servers: LocalBroker, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.DEBUG)
    shown = [
        repr(GIVEN),
        str(GIVEN),
        f"{GIVEN}",
        f"{GIVEN!r:>40}",
        repr([GIVEN]),
        repr({"a": GIVEN}),
    ]
    cluster = Cluster(servers.namesrv_addr, credentials=GIVEN)
    client = rocketpy.connect(servers.namesrv_addr, credentials=GIVEN, timeout_s=20)
    shown += [repr(cluster), repr(client)]
    errors: list[BaseException] = []
    with cluster, client:
        for fails in (
            lambda: cluster.route("nowhere"),
            lambda: client.send("nowhere", b""),
            lambda: cluster.ask("127.0.0.1:1", _command()),
            lambda: cluster.ask_broker("broker-a", _command()),
            lambda: setattr(GIVEN, "secret_key", "other"),
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011
                fails()
            errors.append(caught.value)
        shown.append(asyncio.run(_session_shown(servers.namesrv_addr)))
    shown += [f"{error!r} {error} {error.args} {error.__cause__!r}" for error in errors]
    shown += [repr(pickle.dumps(error)) for error in errors if isinstance(error, _OURS)]
    out, err = capfd.readouterr()
    everything = "\n".join([*shown, caplog.text, out, err])
    assert "reader" in everything  # it was looked at the right place
    assert "nowhere" in everything
    assert SECRET not in everything
    assert TOKEN not in everything


_OURS = rocketpy.errors.RocketPyError


def _command() -> Any:
    from rocketpy.broker_core.protocol.command import RemotingCommand

    return GIVEN.sign(RemotingCommand(31_999, {"topic": "nowhere"}))


async def _session_shown(address: str) -> str:
    async with rocketpy.aio.connect(address, credentials=GIVEN) as client:
        return f"{client!r} {client.session!r} {_command()!r}"
