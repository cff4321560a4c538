from __future__ import annotations

import pickle

import pytest

from rocketpy.broker_core.client.errors import (
    AccessRefusedError,
    FilterRefusedError,
    MissingThereError,
    ServerBusyError,
    ServerRefusedError,
    refusal,
)
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ResponseCode.SYSTEM_ERROR, ServerRefusedError),
        (ResponseCode.SYSTEM_BUSY, ServerBusyError),
        (ResponseCode.SERVICE_NOT_AVAILABLE, ServerBusyError),
        (ResponseCode.FLOW_CONTROL, ServerBusyError),
        (ResponseCode.NO_PERMISSION, AccessRefusedError),
        (ResponseCode.TOPIC_NOT_EXIST, MissingThereError),
        (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, MissingThereError),
        (ResponseCode.SUBSCRIPTION_PARSE_FAILED, FilterRefusedError),
        (4711, ServerRefusedError),
    ],
)
def test_a_code_has_one_error(code: int, error: type[ServerRefusedError]) -> None:
    found = refusal("broker b", RemotingCommand(code, remark="why"))
    assert type(found) is error
    assert found.retriable == (error is ServerBusyError)
    assert str(code) in str(found)
    assert "why; " in str(found)


def test_a_refusal_survives_pickling() -> None:
    error = refusal("broker b", RemotingCommand(16, remark="closed"))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (AccessRefusedError, str(error))
