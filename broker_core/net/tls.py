"""TLS of servers: what `tls.*` properties say, and the context that serves it.

The names are Apache's (TlsSystemConfig), and so is the meaning of the modes: a permissive server
takes plain text and TLS on one port. It has TLS only with a certificate: one of files, or in the
test mode one that it signs itself at each start. Apache's server is in its test mode by default;
ours is not, for a certificate that proves nothing should be asked for.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rocketpy.broker_core.net.errors import TlsError
from rocketpy.broker_core.net.self_signed import self_signed
from rocketpy.broker_core.net.server import TlsMode

_AUTHENTICATION = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "require": ssl.CERT_REQUIRED,
}
_MODES = {each.value: each for each in TlsMode}
_TRUTHS = {"true": True, "false": False}
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """What a server is told about TLS."""

    mode: TlsMode = TlsMode.PERMISSIVE
    is_test: bool = False  # without a certificate of its own it signs one itself
    key_path: str = ""
    key_password: str = ""
    cert_path: str = ""
    trust_cert_path: str = ""
    client_auth: ssl.VerifyMode = ssl.CERT_NONE

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> TlsSettings:
        """Return what properties say; those that are missing are Apache's defaults.

        Raises:
            TlsError: a value is not of its kind; says which.
        """
        return cls(
            mode=_one_of(properties, "tls.server.mode", _MODES, TlsMode.PERMISSIVE.value),
            is_test=_one_of(properties, "tls.test.mode.enable", _TRUTHS, "false"),
            key_path=properties.get("tls.server.keyPath", ""),
            key_password=properties.get("tls.server.keyPassword", ""),
            cert_path=properties.get("tls.server.certPath", ""),
            trust_cert_path=properties.get("tls.server.trustCertPath", ""),
            client_auth=_one_of(properties, "tls.server.need.client.auth", _AUTHENTICATION, "none"),
        )


def server_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """Return the context of a server; None if it speaks plain text only. Reads files.

    Raises:
        TlsError: a file is missing, or is not what it should be.
    """
    if settings.mode is TlsMode.DISABLED:
        return None
    if not settings.cert_path and not settings.key_path:
        if settings.is_test:
            return _test_context()
        if settings.mode is TlsMode.ENFORCING:
            remedy = "give tls.server.certPath and tls.server.keyPath, or tls.test.mode.enable=true"
            raise TlsError("tls.server.mode", settings.mode.value, remedy)
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load_certificate(context, settings)
    if settings.client_auth is not ssl.CERT_NONE:
        _trust(context, settings)
    return context


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    for name, path in (
        ("tls.server.certPath", settings.cert_path),
        ("tls.server.keyPath", settings.key_path),
    ):
        if not Path(path).is_file():
            raise TlsError(name, path, "there is no such file")
    try:
        # A password that is given, empty or not, keeps OpenSSL from asking at the terminal.
        context.load_cert_chain(settings.cert_path, settings.key_path, settings.key_password)
    except (ssl.SSLError, OSError, ValueError) as cause:
        remedy = (
            f"key and certificate cannot be used ({cause}); give PEM files that belong together, "
            "and tls.server.keyPassword if the key is encrypted"
        )
        raise TlsError("tls.server.keyPath", settings.key_path, remedy) from cause


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    path = settings.trust_cert_path
    try:
        context.load_verify_locations(path or None)
    except (ssl.SSLError, OSError, TypeError) as cause:
        remedy = "give the certificates by which clients are known: tls.server.need.client.auth"
        raise TlsError("tls.server.trustCertPath", path, f"{remedy} asks for them") from cause
    context.verify_mode = settings.client_auth


def _test_context() -> ssl.SSLContext:
    """Return a context with a certificate made now; its key is on a disk for moments only."""
    made = self_signed()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", prefix="rocketpy-", suffix=".pem") as file:
        file.write(made.key_pem + made.certificate_pem)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _one_of(
    properties: Mapping[str, str], name: str, values: Mapping[str, _Value], default: str
) -> _Value:
    text = properties.get(name, default).strip().lower()
    if text not in values:
        raise TlsError(name, text, f"give {', '.join(values)}")
    return values[text]
