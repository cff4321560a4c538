"""Options of a read of a cluster: what is refused, in which words, and what is made of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.net.client_tls import ClientTls
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions

SERVERS = "ns1:9876;ns2:9876"

# Options besides `namesrvAddr` and `topic`, the option that is named, words of the message.
BAD = [
    ({"path": "store"}, "namesrvAddr", "cannot be given together with 'path': messages are in"),
    ({"namesrvAddr": "ns1"}, "namesrvAddr", "'ns1' is not host:port; give one like ns1:9876;ns2"),
    ({"namesrvAddr": ";"}, "namesrvAddr", "it names no name server"),
    ({"namesrvAddr": "a:99999"}, "namesrvAddr", "has no port between 1 and 65535"),
    ({"scan": "commitlog", "topic": None}, "scan", "needs the folder of a store, and 'namesrvAdd"),
    ({"view": "queues"}, "view", "needs the folder of a store"),
    ({"view": "INDEX", "topic": None}, "view", "read messages, with the option 'keys'"),
    ({"startingLogOffset": "0"}, "startingLogOffset", "give 'startingOffsets' or 'startingTime"),
    ({"endingLogOffset": "0"}, "endingLogOffset", "give 'endingOffsets' or 'endingTimestamp'"),
    ({"failOnDamage": "false"}, "failOnDamage", "is for scan=commitlog"),
    ({"member": "a"}, "member", "of which group? give 'consumerGroup' as well"),
    ({"besideConsumers": "true"}, "besideConsumers", "is for members; give .option('member'"),
    ({"besideConsumers": "x", "member": "a", "consumerGroup": "g"}, "besideConsumers", "true or f"),
    ({"requestTimeout": "5"}, "requestTimeout", "give a time with its unit"),
    ({"requestTimeout": "0s"}, "requestTimeout", "give 100ms or more"),
    ({"retryTimeout": "soon"}, "retryTimeout", "give a time with its unit"),
    ({"pullBatchSize": "0"}, "pullBatchSize", "a whole number of at least 1"),
    ({"nameSrvAdr": SERVERS}, "namesrvadr", "did you mean 'namesrvAddr'?"),
]  # fmt: skip


def parse(**changes: str | None) -> ReadOptions:
    merged = {"namesrvAddr": SERVERS, "topic": "orders"} | changes
    return ReadOptions.parse({name: value for name, value in merged.items() if value is not None})


@pytest.mark.parametrize(("given", "option", "words"), BAD)
def test_what_a_cluster_cannot_serve_is_refused_by_name(
    given: dict[str, str | None], option: str, words: str
) -> None:
    with pytest.raises(OptionError) as raised:
        parse(**given)
    assert raised.value.option == option
    assert words in str(raised.value)


@pytest.mark.parametrize("written", [SERVERS, f"rocketmq://{SERVERS}", "ns1:9876,ns2:9876"])
def test_a_cluster_is_named_as_everywhere(written: str) -> None:
    parsed = parse(namesrvAddr=written)
    access = ClusterAccess(ClusterAddress(("ns1:9876", "ns2:9876")))
    assert (parsed.path, parsed.cluster) == (None, ClusterOptions(access=access))


def test_options_of_a_cluster_go_to_tasks() -> None:
    parsed = parse(requestTimeout="500ms", retryTimeout="2m", pullBatchSize="32")
    assert parsed.cluster is not None
    assert parsed.cluster.access.timeout_s == 0.5
    assert (parsed.cluster.retry_s, parsed.cluster.pull_batch) == (120, 32)
    assert pickle.loads(pickle.dumps(parsed)) == parsed


def test_one_of_the_two_places_is_asked_for() -> None:
    with pytest.raises(OptionError, match="or 'namesrvAddr' for a cluster"):
        parse(namesrvAddr=None)


SECRET = "never-to-be-seen"


def test_credentials_are_named_by_a_file_and_read_again_by_copies(tmp_path: Path) -> None:
    file = tmp_path / "reader.yml"
    file.touch(mode=0o600)
    file.write_text(f"accessKey: reader\nsecretKey: {SECRET}\n")
    parsed = parse(credentials=str(file), tls="on")
    assert parsed.cluster is not None
    access = parsed.cluster.access
    assert access.credentials is not None
    assert (access.credentials.secret_key, access.tls) == (SECRET, ClientTls())
    packed = pickle.dumps(parsed)
    assert SECRET.encode() not in packed
    assert SECRET not in repr(parsed)
    assert pickle.loads(packed) == parsed


@pytest.mark.parametrize(
    ("options", "name", "words"),
    [
        ({"credentials": "/no/such/file"}, "credentials", "the file cannot be read"),
        ({"tls": "/no/such/file"}, "tls", "the file cannot be read"),
    ],
)
def test_a_way_in_that_is_not_there_is_told_before_the_query_starts(
    options: dict[str, str], name: str, words: str
) -> None:
    with pytest.raises(OptionError, match=words) as told:
        parse(**options)
    assert told.value.option == name
