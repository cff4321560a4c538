"""Both clients and the command line with protected clusters of Apache's: 4.9.7 and 5.5.0."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.interop.apache import BROKER_NAME, LOOPBACK, free_ports
from tests.interop.cluster_addresses import TESTED_VERSION
from tests.interop.installation import VERSION, VERSION_4, install, install_4
from tests.interop.java_process import JavaProcess, java_command
from tests.interop.protected import (
    ADMIN,
    CLOSED_TOPIC,
    GROUP,
    OPEN_TOPIC,
    READER,
    SPARK,
    WRITER,
    Protected,
    protected,
)
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import IdentityRefusedError, PermissionRefusedError
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulled import TOOLS_GROUP, Pulled
from rocketpy.broker_core.client.pulling import Puller
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.net.client_tls import ClientTls, TlsFailedError
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.signing import signed_fields

pytestmark = pytest.mark.interop

TOOL = Path(__file__).parent / "SigningTool.java"
SECRETS = [each.secret_key for each in (ADMIN, READER, WRITER, SPARK)]


@pytest.fixture(scope="module", params=[TESTED_VERSION])
def apache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Protected]:
    with protected(str(request.param), tmp_path_factory.mktemp("apache") / "store") as running:
        yield running


# --- what one may ---------------------------------------------------------------------------------


def test_what_one_client_sends_another_consumes(apache: Protected) -> None:
    with rocketpy.connect(apache.namesrv_addr, credentials=WRITER, timeout_s=30) as writer:
        sent = {writer.send(OPEN_TOPIC, f"order {number}").uniq_key for number in range(3)}
        sent |= {each.uniq_key for each in writer.send_many(OPEN_TOPIC, [b"a" * 9000, "grüße"])}
    with (
        rocketpy.connect(apache.namesrv_addr, credentials=READER, timeout_s=30) as reader,
        reader.consumer(GROUP, OPEN_TOPIC, start="earliest") as consumer,
    ):
        got: set[str] = set()
        while not sent <= got:
            got |= {each.msg_id for each in consumer.poll(30)}
        assert consumer.commit() == []


def test_tasks_read_ranges_without_a_group(apache: Protected) -> None:
    with apache.cluster(WRITER) as writing:
        receipt = Producer(writing).send(OPEN_TOPIC, MessageDraft(body=b"read by a task"))
    with apache.cluster(READER) as cluster:
        (first, end), *_ = ClusterOffsets(cluster).ranges([receipt.queue]).values()
        assert first <= receipt.queue_offset < end
        pulled = [*Puller(cluster).read(receipt.queue, receipt.queue_offset, end)]
    assert pulled[0].queue == receipt.queue


def test_the_command_line_takes_a_file(
    apache: Protected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "admin.yml"
    file.write_text(f"accessKey: {ADMIN.access_key}\nsecretKey: {ADMIN.secret_key}\n")
    file.chmod(0o600)
    command = ["topic", "describe", f"rocketmq://{apache.namesrv_addr}", OPEN_TOPIC]
    found = CliRunner().invoke(app, ["--credentials", str(file), *command])
    assert found.exit_code == 0, found.output
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "no credentials were given" in refused.output
    monkeypatch.setenv("ROCKETPY_CREDENTIALS", str(file))
    assert CliRunner().invoke(app, command).output == found.output
    assert ADMIN.secret_key not in found.output + refused.output


# --- what one may not -----------------------------------------------------------------------------


def send(topic: str) -> Callable[[Cluster], object]:
    return lambda cluster: Producer(cluster).send(topic, MessageDraft(body=b"x"))


def read(topic: str, *, group: str = TOOLS_GROUP) -> Callable[[Cluster], object]:
    def first(cluster: Cluster) -> list[Pulled]:
        return [*Puller(cluster, group=group).read(cluster.route(topic).readable()[0], 0, 1)]

    return first


@pytest.mark.parametrize(
    ("credentials", "text"),
    [
        (None, "it wants to know who asks, and no credentials were given"),
        (Credentials("nobody-here", "1234567"), "(access key 'nobody-here')"),
        (replace(WRITER, secret_key=READER.secret_key), "the secret key is not the one of this"),
    ],
)
def test_who_is_not_known_is_told_so(
    apache: Protected,
    credentials: Credentials | None,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROCKETPY_CREDENTIALS", raising=False)
    with apache.cluster(credentials) as cluster, pytest.raises(IdentityRefusedError) as blocking:
        send(OPEN_TOPIC)(cluster)
    with (
        rocketpy.connect(apache.namesrv_addr, credentials=credentials, timeout_s=30) as client,
        pytest.raises(IdentityRefusedError) as in_loop,
    ):
        client.send(OPEN_TOPIC, b"x")
    for error in (blocking.value, in_loop.value):
        assert str(error).startswith(f"broker {BROKER_NAME} refuses it: ")
        assert text in str(error)
        assert not any(secret in str(error) + repr(error) for secret in SECRETS)


@pytest.mark.parametrize(
    ("who", "action", "text"),
    [
        (READER, send(OPEN_TOPIC), f"no permission for topic '{OPEN_TOPIC}'"),
        (WRITER, send(CLOSED_TOPIC), f"no permission for topic '{CLOSED_TOPIC}'"),
        (WRITER, read(OPEN_TOPIC), "no permission for "),
        (READER, read(OPEN_TOPIC, group="other"), "no permission for group 'other'"),
        (READER, read(CLOSED_TOPIC), f"no permission for topic '{CLOSED_TOPIC}'"),
    ],
)
def test_who_may_not_is_told_what(
    apache: Protected, who: Credentials, action: Callable[[Cluster], object], text: str
) -> None:
    with apache.cluster(who) as cluster, pytest.raises(PermissionRefusedError) as caught:
        action(cluster)
    assert text in str(caught.value)
    assert "have a rule added for it" in str(caught.value)


def test_topics_are_made_by_administrators(apache: Protected) -> None:
    with apache.cluster(WRITER) as cluster, pytest.raises(PermissionRefusedError) as caught:
        ClusterTopics(cluster).create("mine", queues=1)
    said = "this is for administrators" if apache.version == VERSION_4 else "topic 'mine'"
    assert said in str(caught.value)
    with (
        rocketpy.connect(apache.namesrv_addr, credentials=WRITER, timeout_s=30) as client,
        pytest.raises(PermissionRefusedError, match=said),
    ):
        client.admin.topics.create("mine", queues=1)


def test_a_consumer_that_may_not_read_says_so_in_its_log(
    apache: Protected, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        rocketpy.connect(apache.namesrv_addr, credentials=READER, timeout_s=30) as client,
        client.consumer(GROUP, CLOSED_TOPIC, start="earliest") as consumer,
    ):
        while f"no permission for topic '{CLOSED_TOPIC}'" not in caplog.text:
            assert consumer.poll(0.2) == []
    assert not any(secret in caplog.text for secret in SECRETS)


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A name server of 5.5.0 that takes TLS only, with a certificate that it signed itself."""
    home, (port, *_) = tmp_path_factory.mktemp("namesrv"), free_ports()
    configuration = home / "namesrv.conf"
    configuration.write_text(
        f"listenPort={port}\nbindAddress={LOOPBACK}\nkvConfigPath={home}/kvConfig.json\n"
    )
    command = java_command(
        *("org.apache.rocketmq.namesrv.NamesrvStartup", "-c", str(configuration)),
        class_path=install().class_path,
        home=home,
        options=("-Dtls.server.mode=enforcing",),
    )
    process = JavaProcess(command, home=home, log=home / "namesrv.log")
    try:
        process.wait_for("boot success")
        yield f"{LOOPBACK}:{port}"
    finally:
        process.kill()


def test_a_server_of_apache_that_takes_tls_only(tls_only: str) -> None:
    with Cluster(tls_only, timeout_s=30, tls=ClientTls(verifies=False)) as cluster:
        assert cluster.topics() == []
    with (
        Cluster(tls_only, timeout_s=30, tls=ClientTls()) as cluster,
        pytest.raises(TlsFailedError, match="an authority that is not trusted"),
    ):
        cluster.topics()
    with (
        Cluster(tls_only, timeout_s=30) as cluster,
        pytest.raises(ServerUnreachableError, match="if it takes TLS only, connect with tls"),
    ):
        cluster.topics()


def test_a_server_of_apache_that_takes_no_tls(apache: Protected) -> None:
    with (
        Cluster(apache.namesrv_addr, timeout_s=30, tls=ClientTls(verifies=False)) as cluster,
        pytest.raises(TlsFailedError, match="it does not speak TLS on this port"),
    ):
        cluster.topics()


# --- Spark ----------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_spark_on_a_protected_cluster_says_what_is_refused_and_no_secret(
    apache: Protected, tls_only: str, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    wrong = replace(SPARK, secret_key=READER.secret_key)
    for name, who in (("spark", SPARK), ("reader", READER), ("wrong", wrong)):
        file = secrets / f"{name}.yml"
        file.write_text(f"accessKey: {who.access_key}\nsecretKey: {who.secret_key}\n")
        file.chmod(0o600)
    (secrets / "tls.properties").write_text("tls.client.authServer=false\n")
    with rocketpy.local_broker(tls=True, topics=[OPEN_TOPIC]) as ours:
        places = {
            "protected": apache.namesrv_addr, "tls_only": tls_only, "ours": ours.namesrv_addr
        }  # fmt: skip
        (tmp_path / "places.json").write_text(json.dumps(places))
        command = [sys.executable, "-m", "tests.interop.access_job", str(tmp_path)]
        with (tmp_path / "printed").open("wb") as out, (tmp_path / "errors").open("wb") as err:
            root = Path(__file__).parents[2]
            ran = subprocess.run(command, cwd=root, stdout=out, stderr=err, check=False)
    assert ran.returncode == 0, (tmp_path / "errors").read_text()[-5000:]
    said = json.loads((tmp_path / "printed").read_text().splitlines()[-1])
    assert said["read"] == said["streamed"] >= said["written"]
    assert said["encrypted"] == said["written"]
    for what, words in REFUSALS.items():
        assert words in said[what], what
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and secrets not in path.parents]
    assert {"events", "checkpoint"} <= {path.relative_to(tmp_path).parts[0] for path in kept}
    found = [path for path in kept for each in SECRETS if each.encode() in path.read_bytes()]
    assert found == []


REFUSALS = {
    "wrong key": "the secret key is not the one of this access key",
    "no key": "it wants to know who asks, and no credentials were given",
    "may not write": "no permission for group 'rocketpy-sink-",  # it is asked for first
    "may not read": f"no permission for topic '{CLOSED_TOPIC}'",
    "may not stream": f"no permission for topic '{CLOSED_TOPIC}'",
    "plain": "if it takes TLS only, connect with tls",
    "not trusted": "an authority that is not trusted",
}


# --- the signature --------------------------------------------------------------------------------

CASES = [
    ({}, b"", None),
    ({"topic": "orders", "queueId": "3", "b": "grüße"}, bytes(range(256)), None),
    ({"topic": "orders", "queueId": "3", "b": "grüße"}, bytes(range(256)), "a-token"),
    ({"Z": "1", "a": "2", "A": "3", "_": "4", "aa": ""}, b"x" * 100_000, None),
]


@pytest.mark.parametrize("version", [pytest.param(VERSION_4, marks=pytest.mark.further), VERSION])
def test_apaches_hook_signs_as_we_do(version: str, tmp_path: Path) -> None:
    installation = install_4() if version == VERSION_4 else install()
    secret = "s3cret-ü"
    lines = []
    for fields, body, token in CASES:
        named = [word for field in fields.items() for word in field]
        words = ["reader", secret, token, body, *named]
        lines.append(" ".join("-" if word is None else _word(word) for word in words))
    done = subprocess.run(
        java_command(str(TOOL), class_path=installation.class_path, home=tmp_path),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    printed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("signature")]
    ours = [
        signed_fields(fields, body, access_key="reader", secret_key=secret, security_token=token)[
            "Signature"
        ]
        for fields, body, token in CASES
    ]
    assert printed == ours


def _word(value: str | bytes) -> str:
    data = value.encode() if isinstance(value, str) else value
    return base64.b64encode(data).decode() or "-"
