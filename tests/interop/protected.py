"""Apache's name server and broker with access control: 4.9.7 by plain_acl.yml, 5.5.0 by its users.

Both have the same accounts, by their rules: an administrator, one who may read, one who may send,
and one who may do what Spark does with a topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.apache import BROKER_NAME, NO_LOGS, ApacheBroker, Setting
from tests.interop.installation import VERSION_4, install_4

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.signing import signed_fields

ADMIN = Credentials("the-admin", "secret-of-the-admin")
READER = Credentials("the-reader", "secret-of-the-reader")
WRITER = Credentials("the-writer", "secret-of-the-writer")
SPARK = Credentials("the-spark", "secret-of-the-spark")
OPEN_TOPIC, CLOSED_TOPIC, GROUP = "orders", "salaries", "billing"
_TOOLS_GROUP = "TOOLS_CONSUMER"  # as which we read without a group

_SMALL = {"mappedFileSizeCommitLog": 16 << 20, "maxHashSlotNum": 5000, "maxIndexNum": 20000}
_PLAIN_ACL = f"""
globalWhiteRemoteAddresses:
accounts:
- accessKey: {ADMIN.access_key}
  secretKey: {ADMIN.secret_key}
  admin: true
- accessKey: {READER.access_key}
  secretKey: {READER.secret_key}
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - {OPEN_TOPIC}=SUB
  groupPerms:
  - {GROUP}=SUB
  - {_TOOLS_GROUP}=SUB
- accessKey: {WRITER.access_key}
  secretKey: {WRITER.secret_key}
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - {OPEN_TOPIC}=PUB
- accessKey: {SPARK.access_key}
  secretKey: {SPARK.secret_key}
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - {OPEN_TOPIC}=PUB|SUB
"""
_AUTH = "org.apache.rocketmq.auth"
_USERS_OF_5: dict[str, Setting] = {
    "authenticationEnabled": True,
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": (
        f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "initAuthenticationUser": json.dumps(
        {"username": ADMIN.access_key, "password": ADMIN.secret_key}
    ),
    "innerClientAuthenticationCredentials": json.dumps(
        {"accessKey": ADMIN.access_key, "secretKey": ADMIN.secret_key}
    ),
    "authorizationEnabled": True,
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": (
        f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
}
_CREATE_USER, _CREATE_ACL = 3001, 3006  # request codes of 5.3 and later
_RULES_OF_5 = {
    READER: {
        f"Topic:{OPEN_TOPIC}": ["Sub", "Get"],
        f"Group:{GROUP}": ["Sub", "Get"],
        f"Group:{_TOOLS_GROUP}": ["Sub"],
    },
    WRITER: {f"Topic:{OPEN_TOPIC}": ["Pub"]},
    SPARK: {
        f"Topic:{OPEN_TOPIC}": ["Pub", "Sub", "Get"],
        f"Group:{GROUP}": ["Sub", "Get"],
        f"Group:{_TOOLS_GROUP}": ["Sub"],
        "Group:rocketpy-sink-*": ["Sub", "Get", "Create", "Update"],
    },
}


@dataclass(frozen=True, slots=True)
class Protected:
    """A running cluster."""

    version: str
    namesrv_addr: str

    def cluster(self, credentials: Credentials | None) -> Cluster:
        """Return the cluster, asked as somebody."""
        return Cluster(self.namesrv_addr, credentials=credentials, timeout_s=30)


@contextmanager
def protected(version: str, store: Path) -> Iterator[Protected]:
    """Run a protected cluster with the accounts, two topics and a group."""
    if version == VERSION_4:
        broker = ApacheBroker(
            store,
            settings={**_SMALL, "aclEnable": True},
            installation=install_4(),
            files={**NO_LOGS, "conf/plain_acl.yml": _PLAIN_ACL},
            sign=_sign,
        )
    else:
        broker = ApacheBroker(store, settings={**_SMALL, **_USERS_OF_5}, sign=_sign)
    with broker:
        running = Protected(version, broker.namesrv_addr)
        with running.cluster(ADMIN) as cluster:
            if version != VERSION_4:
                _add_users(cluster)
            for topic in (OPEN_TOPIC, CLOSED_TOPIC):
                ClusterTopics(cluster).create(topic, queues=2)
            ClusterGroups(cluster).create(GROUP)
        yield running


def _sign(fields: dict[str, str], body: bytes) -> dict[str, str]:
    return signed_fields(fields, body, access_key=ADMIN.access_key, secret_key=ADMIN.secret_key)


def _add_users(cluster: Cluster) -> None:
    for user, rules in _RULES_OF_5.items():
        who = {"username": user.access_key, "password": user.secret_key, "userType": "Normal"}
        named = {"username": user.access_key}
        cluster.ask_broker(
            BROKER_NAME, RemotingCommand(_CREATE_USER, named, json.dumps(who).encode())
        )
        subject = f"User:{user.access_key}"
        entries = [
            {"resource": resource, "actions": actions, "decision": "Allow"}
            for resource, actions in rules.items()
        ]
        acl = {"subject": subject, "policies": [{"policyType": "Custom", "entries": entries}]}
        command = RemotingCommand(_CREATE_ACL, {"subject": subject}, json.dumps(acl).encode())
        cluster.ask_broker(BROKER_NAME, command)
