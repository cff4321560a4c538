"""What brokers of Apache said, word by word, and what we make of it."""

from __future__ import annotations

import pickle

import pytest

from rocketpy.broker_core.client.errors import (
    AccessRefusedError,
    IdentityRefusedError,
    PermissionRefusedError,
    ServerRefusedError,
    refusal,
)
from rocketpy.broker_core.protocol.command import RemotingCommand

ACL = "org.apache.rocketmq.acl.common.AclException: "
AT = ", org.apache.rocketmq.acl.plain.PlainPermissionManager.checkPerm(Plain.java:605)"


@pytest.mark.parametrize(
    ("code", "remark", "error", "text"),
    [
        (1, f"{ACL}No accessKey is configured{AT}", IdentityRefusedError, "no credentials were"),
        (1, f"{ACL}No acl config for nobody{AT}", IdentityRefusedError,
         "does not know the access key (access key 'nobody')"),
        (1, f"{ACL}Check signature failed for accessKey=reader{AT}", IdentityRefusedError,
         "the secret key is not the one of this access key (access key 'reader')"),
        (1, f"{ACL}No default permission for topic:orders{AT}", PermissionRefusedError,
         "no permission for topic 'orders'; have a rule added"),
        (1, f"{ACL}No default permission for group:billing{AT}", PermissionRefusedError,
         "no permission for group 'billing'"),
        (1, f"{ACL}Need admin permission for request code=17, but accessKey=reader is not{AT}",
         PermissionRefusedError, "this is for administrators (access key 'reader')"),
        (1, f"{ACL}words of another version{AT}", PermissionRefusedError,
         "its rules do not allow it (org.apache.rocketmq.acl.common.AclException: words of"),
        (16, "username cannot be null.", IdentityRefusedError, "no credentials were given; give"),
        (16, "User:nobody is not found.", IdentityRefusedError, "(access key 'nobody')"),
        (16, "check signature failed.", IdentityRefusedError, "the secret key is not the one"),
        (16, "User:reader is disabled.", IdentityRefusedError, "this user is disabled there"),
        (16, "User:reader has no permission to access Topic:orders from 127.0.0.1, no matched "
             "policies.", PermissionRefusedError,
         "no permission for topic 'orders' (access key 'reader')"),
        (16, "User:reader has no permission to access Group:billing from 127.0.0.1, the decision "
             "is deny.", PermissionRefusedError, "no permission for group 'billing'"),
    ],
)  # fmt: skip
def test_a_denial_names_broker_what_is_refused_and_the_remedy(
    code: int, remark: str, error: type[ServerRefusedError], text: str
) -> None:
    found = refusal("broker a", RemotingCommand(code, remark=remark))
    assert type(found) is error
    assert str(found).startswith("broker a refuses it: ")
    assert text in str(found)
    assert found.remedy in str(found)
    assert not found.retriable
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@pytest.mark.parametrize(
    ("code", "remark", "error"),
    [
        (1, "no consumer for this group, billing", ServerRefusedError),
        (16, "the topic[orders] sending message is forbidden", AccessRefusedError),
        (14, "username cannot be null.", ServerRefusedError),
    ],
)
def test_other_refusals_stay_what_they_are(
    code: int, remark: str, error: type[ServerRefusedError]
) -> None:
    found = refusal("broker a", RemotingCommand(code, remark=remark))
    assert isinstance(found, error)
    assert not isinstance(found, (IdentityRefusedError, PermissionRefusedError))
    assert remark in str(found)
