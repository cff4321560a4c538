"""Who asks, for clusters that want to know: access key, secret key, perhaps a security token.

G1  The secret and the token are never shown: not by repr and str, in no error, in no line of a log.
G2  What came from the environment or from a file is read there again by a pickled copy: Spark's
    plans, checkpoints and tasks carry the place, not the secret. Only what a program gave by its
    arguments travels with it, for there is no other way.
G3  Each request is signed as it leaves; nothing that was signed is kept.

A file has a line for each, as Apache's tools.yml has them; quotes and comments may be there:

    accessKey: reader
    secretKey: "…"
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.signing import signed_fields

log = logging.getLogger(__name__)

FILE = "ROCKETPY_CREDENTIALS"  # the path of a file
ACCESS_KEY, SECRET_KEY = "ROCKETPY_ACCESS_KEY", "ROCKETPY_SECRET_KEY"
SECURITY_TOKEN = "ROCKETPY_SECURITY_TOKEN"
_ENVIRONMENT = "environment"
_LINE = re.compile(
    r"""\s*["']?(?P<name>\w+)["']?\s*[:=]\s*"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s"'#](?:\S|\s+(?=[^\s#]))*)?)"""
    r"""\s*(?:\s\#.*)?"""
)
_NAMES = {"accesskey": "access_key", "secretkey": "secret_key", "securitytoken": "security_token"}
_READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


class CredentialsError(RocketPyError):
    """Is raised when there are no credentials where they should be; never says what is there."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place, self.problem = place, problem

    def __str__(self) -> str:
        return f"credentials from {self.place}: {self.problem}"


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """An access key and its secret; `rocketpy.connect(..., credentials=…)` takes it."""

    access_key: str
    secret_key: str
    security_token: str | None = None
    place: str = field(default="arguments", compare=False)  # where they came from

    def __post_init__(self) -> None:
        wanted = (("access_key", self.access_key), ("secret_key", self.secret_key))
        for name, value in wanted:
            if type(value) is not str or not value:  # a mistake must not end in a traceback of it
                raise CredentialsError(self.place, f"give {name}, a str that is not empty")
        if type(self.security_token) not in (str, type(None)):
            raise CredentialsError(self.place, "give security_token as a str, or not at all")

    def __repr__(self) -> str:
        return f"<credentials of {self.access_key!r}, from {self.place}>"

    def __reduce__(self) -> tuple[Callable[..., Credentials], tuple[object, ...]]:
        if self.place == _ENVIRONMENT:
            return _from_environment, ()
        if self.place.startswith("/"):
            return Credentials.of_file, (self.place,)
        return Credentials, (self.access_key, self.secret_key, self.security_token, self.place)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials | None:
        """Return what ROCKETPY_ACCESS_KEY and ROCKETPY_SECRET_KEY say; None without them.

        ROCKETPY_SECURITY_TOKEN may be there as well. ROCKETPY_CREDENTIALS names a file instead.

        Raises:
            CredentialsError: one of the two is missing, or the file cannot be read.
        """
        found = os.environ if environment is None else environment
        if path := found.get(FILE):
            if found.get(ACCESS_KEY) or found.get(SECRET_KEY):
                raise CredentialsError(
                    _ENVIRONMENT, f"{FILE} and {ACCESS_KEY} are both set; keep one of them"
                )
            return cls.of_file(path)
        access_key, secret_key = found.get(ACCESS_KEY, ""), found.get(SECRET_KEY, "")
        if not access_key and not secret_key:
            return None
        if not access_key or not secret_key:
            missing = SECRET_KEY if access_key else ACCESS_KEY
            raise CredentialsError(_ENVIRONMENT, f"{missing} is not set; set both, or none")
        return cls(access_key, secret_key, found.get(SECURITY_TOKEN) or None, _ENVIRONMENT)

    @classmethod
    def of_file(cls, path: str | Path) -> Credentials:
        """Return what a file says: accessKey, secretKey and, if it is there, securityToken.

        A file that others may read is warned of.

        Raises:
            CredentialsError: it cannot be read, or lacks one of them.
        """
        place = Path(path).expanduser().absolute()
        try:
            text = place.read_text("utf-8")
            mode = place.stat().st_mode
        except (OSError, UnicodeDecodeError) as cause:
            reason = cause.strerror if isinstance(cause, OSError) else "it is no text"
            problem = f"the file cannot be read ({reason}); it has to be where this runs"
            raise CredentialsError(str(place), problem) from None  # a decoder's error has the bytes
        if mode & _READABLE_BY_OTHERS:
            log.warning("%s: others may read this secret; chmod 600 it", place)
        found = _parse(str(place), text)
        return cls(**found, place=str(place))

    def sign(self, command: RemotingCommand) -> RemotingCommand:
        """Return a request, signed; the same one, whose fields are new."""
        command.fields = signed_fields(
            command.fields,
            command.body,
            access_key=self.access_key,
            secret_key=self.secret_key,
            security_token=self.security_token,
        )
        return command


def _parse(place: str, text: str) -> dict[str, str]:
    """Return the values by the names of their fields; problems are told by the line's number."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", "---")):
            continue
        parsed = _LINE.fullmatch(line)
        name = _NAMES.get(parsed["name"].lower()) if parsed is not None else None
        if parsed is None or name is None:
            raise CredentialsError(
                place,
                f"line {number} is none of accessKey, secretKey, securityToken, each as "
                "'name: value'; give a file with one account, not a broker's plain_acl.yml",
            )
        found[name] = parsed["double"] or parsed["single"] or parsed["plain"] or ""
    for name, written in (("access_key", "accessKey"), ("secret_key", "secretKey")):
        if not found.get(name):
            raise CredentialsError(place, f"{written} is missing there; add a line '{written}: …'")
    return found


def _from_environment() -> Credentials:
    found = Credentials.of_environment()
    if found is None:
        problem = (
            f"{ACCESS_KEY} and {SECRET_KEY} are not set here, where a copy is made; set them for "
            "Spark's executors too (spark.executorEnv.…), or give a file that all of them have"
        )
        raise CredentialsError(_ENVIRONMENT, problem)
    return found
