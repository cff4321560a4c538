"""The signature by which a protected cluster knows who asks: fields and body in, fields out.

Clusters of 4.x (`aclEnable`) and of 5.x (`authenticationEnabled`) check the same one: three fields
more, the last of which is made of all others and of the body. They differ in one field, that of a
query by a unique key (`_UNIQUE_KEY_QUERY`): 4.x leaves it out, and 5.x does so for requests of the
versions up to 4.9.3. Our client does not send it. No I/O.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

ACCESS_KEY, SECURITY_TOKEN, SIGNATURE = "AccessKey", "SecurityToken", "Signature"


def signed_fields(
    fields: Mapping[str, str],
    body: bytes | memoryview,
    *,
    access_key: str,
    secret_key: str,
    security_token: str | None = None,
) -> dict[str, str]:
    """Return the fields of a request with those that sign it; a signature of before is replaced."""
    signed = {name: value for name, value in fields.items() if name != SIGNATURE}
    signed[ACCESS_KEY] = access_key
    if security_token is not None:
        signed[SECURITY_TOKEN] = security_token
    signed[SIGNATURE] = _signature(signed, body, secret_key)
    return signed


def _signature(fields: Mapping[str, str], body: bytes | memoryview, secret_key: str) -> str:
    """Return Base64 of HMAC-SHA1 over the values, in the order of their names, and the body."""
    values = "".join(fields[name] for name in sorted(fields))
    content = b"".join((values.encode(), body))
    return base64.b64encode(hmac.digest(secret_key.encode(), content, "sha1")).decode()
