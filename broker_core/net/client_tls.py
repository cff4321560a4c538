"""TLS of clients: whom to trust, what to show, and what a handshake that fails means.

T1  A server has to prove who it is, unless that is switched off by name: its certificate comes
    from an authority that is trusted, is in time, and is one of the host that is asked.
T2  A failure says which of these it is, or that one side speaks plain text, and what to do.

The settings are a value: tasks get paths and open the files themselves.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.net.errors import ServerUnreachableError, TlsError

FILE = "ROCKETPY_TLS"
_RECORDS, _SSL_3 = (0x15, 0x16), 3  # how the first records of TLS begin: kind and version
_TRUTHS = {"true": True, "false": False}
_NAMES = {
    "tls.client.trustCertPath": "ca",
    "tls.client.certPath": "certificate",
    "tls.client.keyPath": "key",
    "tls.client.keyPassword": "key_password",
}
_SWITCHES = {"tls.client.authServer": "verifies", "tls.client.checkHost": "checks_host"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """How a client speaks TLS; all files are PEM.

    `ca` has the authorities to trust: without it, those of the system. `certificate` and `key` are
    shown to servers that want to know their clients. Without `checks_host` the certificate may be
    one of another host; without `verifies` any certificate will do, so that anybody may listen in:
    for tests.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_host: bool = True
    verifies: bool = True
    place: str | None = field(default=None, repr=False, compare=False)  # the file that says it

    def __reduce__(self) -> tuple[Callable[..., ClientTls], tuple[object, ...]]:
        if self.place is not None:  # it is read again: no copy carries the password
            return ClientTls.of_file, (self.place,)
        return _copy, (asdict(self),)

    @classmethod
    def of_file(cls, path: str | Path) -> ClientTls:
        """Return what a file of properties says, by the names that Apache's clients know.

        These are `tls.client.trustCertPath`, `.certPath`, `.keyPath`, `.keyPassword` and
        `.authServer`, which is true unless the file says otherwise; `.checkHost` is ours.

        Raises:
            TlsError: it cannot be read, or a value is not of its kind.
        """
        try:
            path = Path(path).expanduser().absolute()
            found = java_properties.parse(path.read_text("utf-8"))
        except (OSError, ValueError) as cause:
            reason = cause.strerror if isinstance(cause, OSError) else "it is no file of properties"
            raise TlsError("tls", str(path), f"the file cannot be read ({reason})") from None
        switches = {}
        for name, known in _SWITCHES.items():
            text = found.get(name, "true").strip().lower()
            if text not in _TRUTHS:
                raise TlsError(name, text, "give true or false")
            switches[known] = _TRUTHS[text]
        texts = {known: found[name].strip() or None for name, known in _NAMES.items()
                 if name in found}  # fmt: skip
        return cls(**texts, **switches, place=str(path))  # type: ignore[arg-type]  # as the tables

    @classmethod
    def parse(cls, text: str) -> ClientTls | None:
        """Return what a text says: the path of such a file, `on` or `off`; nothing is off, too.

        Raises:
            TlsError: as of_file()
        """
        if text.strip().lower() in ("", "off"):
            return None
        return cls() if text.strip().lower() == "on" else cls.of_file(text)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None) -> ClientTls | None:
        """Return what ROCKETPY_TLS says, as parse() reads it; None without it.

        Raises:
            TlsError: as of_file()
        """
        return cls.parse((os.environ if environment is None else environment).get(FILE, ""))

    def context(self) -> ssl.SSLContext:
        """Return the context of connections. Reads files.

        Raises:
            TlsError: a file is missing, or is not what it should be.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (ssl.SSLError, OSError) as cause:
            remedy = f"no authorities can be read there ({_text(cause)}); give a PEM file"
            raise TlsError("ca", str(self.ca), remedy) from cause
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if not self.verifies:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif not self.checks_host:
            context.check_hostname = False
        if self.certificate is not None:
            self._show(context)
        elif self.key is not None:
            raise TlsError("key", self.key, "give the certificate that belongs to it, too")
        return context

    def _show(self, context: ssl.SSLContext) -> None:
        assert self.certificate is not None
        try:
            # A password that is given, empty or not, keeps OpenSSL from asking at the terminal.
            context.load_cert_chain(self.certificate, self.key, self.key_password or "")
        except (ssl.SSLError, OSError, ValueError) as cause:
            remedy = (
                f"certificate and key cannot be used ({_text(cause)}); give PEM files that belong "
                "together, and key_password if the key is encrypted"
            )
            raise TlsError("certificate", self.certificate, remedy) from cause


def context_of(tls: ClientTls | bool | None) -> ssl.SSLContext | None:
    """Return the context of what a program says: True, a value, or None for the environment's.

    Raises:
        TlsError: a file is missing, or is not what it should be.
    """
    if tls is None:
        tls = ClientTls.of_environment() or False
    if isinstance(tls, ClientTls):
        return tls.context()
    return ClientTls().context() if tls else None


def _copy(fields: Mapping[str, Any]) -> ClientTls:
    return ClientTls(**fields)


# --- failures -------------------------------------------------------------------------------------


class TlsFailedError(ServerUnreachableError):
    """Is raised when a server and this client cannot agree on TLS: says why, and what to do."""

    retriable = False

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(address, reason)
        self.args = (address, reason, remedy)  # what a pickled copy is made of
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.address}: {self.reason}; {self.remedy}"


_OTHER_HOST = (
    "its certificate is one of another host",
    "ask it by a name or address that the certificate has; brokers are asked by the address that "
    "they register (brokerIP1). ClientTls(checks_host=False) leaves out this check alone",
)
_STRANGER = (
    "its certificate comes from an authority that is not trusted",
    "give the authority's certificate: ClientTls(ca=…)",
)
_VERIFICATIONS = {
    9: ("its certificate is not valid yet", "compare the clocks of both machines"),
    10: ("its certificate has expired", "have it renewed; or this machine's clock is wrong"),
    18: _STRANGER,
    19: _STRANGER,
    20: _STRANGER,
    21: _STRANGER,
    62: _OTHER_HOST,
    64: _OTHER_HOST,
}
_WANTED = (
    "it wants a certificate of its clients",
    "give one that it trusts: ClientTls(certificate=…, key=…)",
)
_ALERTS = {
    "CERTIFICATE_REQUIRED": _WANTED,
    "ALERT_HANDSHAKE_FAILURE": _WANTED,  # what servers of TLS 1.2 say then
    "ALERT_UNKNOWN_CA": ("it does not trust our certificate", _WANTED[1]),
    "ALERT_BAD_CERTIFICATE": ("it does not take our certificate", _WANTED[1]),
    "ALERT_CERTIFICATE_UNKNOWN": ("it does not take our certificate", _WANTED[1]),
    "ALERT_CERTIFICATE_EXPIRED": ("our certificate has expired", "have it renewed"),
}
_PLAIN = (
    "it does not speak TLS on this port",
    "connect without tls; or have TLS switched on there (tls.server.mode)",
)
_SPEAKS_TLS = (
    "it speaks TLS on this port",
    "connect with tls: rocketpy.connect(..., tls=True), or ROCKETPY_TLS=on",
)
_UNHEARD = "it closed the connection without an answer; "
_UNHEARD_PLAIN = f"{_UNHEARD}if it takes TLS only, connect with tls"
_UNHEARD_TLS = f"{_UNHEARD}if it wants a certificate of its clients, give ClientTls(certificate=…)"


def handshake_failure(address: str, cause: BaseException) -> ServerUnreachableError | None:
    """Return what the failure of a connection with TLS means; None if TLS has no part in it."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        other = (f"its certificate is refused ({cause.verify_message})", "have another one made")
        return TlsFailedError(address, *_VERIFICATIONS.get(cause.verify_code, other))
    if isinstance(cause, ssl.SSLError):
        said = f"{cause.reason or ''} {cause}".upper()
        for alert, meaning in _ALERTS.items():
            if alert in said:
                return TlsFailedError(address, *meaning)
        if "WRONG_VERSION_NUMBER" in said or "EOF" in said:
            return TlsFailedError(address, *_PLAIN)
        return TlsFailedError(address, f"TLS fails ({_text(cause)})", "its log says more")
    if isinstance(cause, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)):
        return TlsFailedError(address, *_PLAIN)  # it takes our first bytes for a frame without end
    return None


def ended_connection(
    address: str, reason: str, cause: BaseException | None, first: bytes, *, has_tls: bool
) -> ServerUnreachableError:
    """Return what the end of a connection means of which `first` are the first bytes that came."""
    if isinstance(cause, ssl.SSLError) and (failed := handshake_failure(address, cause)):
        return failed
    if not has_tls and len(first) > 1 and first[0] in _RECORDS and first[1] == _SSL_3:
        return TlsFailedError(address, *_SPEAKS_TLS)
    if not first and (cause is None or isinstance(cause, ConnectionError)):
        reason = _UNHEARD_TLS if has_tls else _UNHEARD_PLAIN
    return ServerUnreachableError(address, reason)


def _text(cause: BaseException) -> str:
    return getattr(cause, "strerror", None) or getattr(cause, "reason", None) or str(cause)
