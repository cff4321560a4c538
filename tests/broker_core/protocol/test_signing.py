from __future__ import annotations

import pytest

from rocketpy.broker_core.protocol.signing import signed_fields

FIELDS = {"topic": "orders", "queueId": "3", "b": "grüße"}
BODY = bytes(range(256))


# What AclClientRPCHook of Apache's clients 4.9.7 and 5.5.0 adds to a request of these fields and
# this body; tests/interop/test_access.py asks it again.
@pytest.mark.parametrize(
    ("token", "body", "signature"),
    [
        (None, BODY, "bMc4s7KtQ41iBi8CK+TtHZ24SEo="),
        ("a-token", BODY, "gtWnLg5LHyxiVm1zGAgCLc1MYn0="),
        (None, b"", "h9dXVeXSF54l8/nkNLbZ51ux68Q="),
    ],
)
def test_the_signature_is_the_one_that_apaches_hook_makes(
    token: str | None, body: bytes, signature: str
) -> None:
    signed = signed_fields(
        FIELDS, body, access_key="reader", secret_key="s3cret-ü", security_token=token
    )
    wanted = {**FIELDS, "AccessKey": "reader", "Signature": signature}
    assert signed == (wanted if token is None else {**wanted, "SecurityToken": token})


def test_a_request_that_is_sent_again_is_signed_anew() -> None:
    once = signed_fields(FIELDS, BODY, access_key="reader", secret_key="one")
    again = signed_fields(once, memoryview(BODY), access_key="reader", secret_key="one")
    other = signed_fields(once, BODY, access_key="reader", secret_key="two")
    assert again == once
    assert other["Signature"] != once["Signature"]
    assert "Signature" not in FIELDS
