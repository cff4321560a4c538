"""Who may use a console: a file of names, roles and hashed passwords.

U1  No password is kept: only what scrypt makes of it, with a salt of each user's own.
U2  The file is read by its owner alone (mode 0600), is replaced whole or not at all, and is looked
    at again when it changes: who is taken out of it, or gets another role, is that at once.
U3  A wrong name takes as long to refuse as a wrong password. Few are checked at a time, so that
    many at once take neither all memory nor all threads.

A file is JSON: {"users": {"anna": {"role": "admin", "salt": "…", "hash": "…", "cost": [n, r, p]}}}
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import tempfile
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from rocketpy.broker_core.errors import RocketPyError

Role = Literal["viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
LEAST_PASSWORD, MOST_PASSWORD = 10, 1024  # characters
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST_BYTES = 1 << 20
_MOST_COST = 1 << 28  # bytes of memory that one check may take
_WAITING, _AT_ONCE = 8, 2
_HASH_BYTES = 32


class AccountsError(RocketPyError):
    """Is raised when a users file cannot be used; never says what is in it."""

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"users in {self.path}: {self.problem}"


class LoginBusyError(RuntimeError):
    """Is raised when too many passwords are being checked at this moment; the browser is told."""

    def __str__(self) -> str:
        return "too many passwords are being checked just now; try again in some seconds"


class Cost(NamedTuple):
    """What a check costs: scrypt's n, r and p; memory is 128 bytes times n times r."""

    n: int = 1 << 15
    r: int = 8
    p: int = 3

    @property
    def memory(self) -> int:
        """How many bytes it takes."""
        return 128 * self.n * self.r


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One user. Two of the same name that differ in anything are not the same."""

    name: str
    role: Role
    salt: bytes
    digest: bytes
    cost: Cost

    def __repr__(self) -> str:
        return f"<account {self.name!r}, {self.role}>"

    def may_as(self, role: Role) -> bool:
        """Whether the user may do what a role may: each may all that those before it may."""
        return ROLES.index(self.role) >= ROLES.index(role)

    @classmethod
    def of(cls, name: str, role: Role, password: str, cost: Cost) -> Account:
        """Return an account with a password, and a new salt."""
        salt = secrets.token_bytes(16)
        digest = _digest(password, salt, cost)
        return cls(name=name, role=role, salt=salt, digest=digest, cost=cost)

    def members(self) -> dict[str, Any]:
        """Return what a file has of it."""
        return {
            "role": self.role,
            "salt": base64.b64encode(self.salt).decode(),
            "hash": base64.b64encode(self.digest).decode(),
            "cost": [*self.cost],
        }


_NOBODY = Account(name="", role="viewer", salt=bytes(16), digest=bytes(_HASH_BYTES), cost=Cost())


def _digest(password: str, salt: bytes, cost: Cost) -> bytes:
    # One way to write each character: keyboards differ in how they compose them.
    text = unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(
        text,
        salt=salt,
        n=cost.n,
        r=cost.r,
        p=cost.p,
        maxmem=2 * cost.memory + (1 << 20),
        dklen=_HASH_BYTES,
    )


class Accounts:
    """The accounts of a file, as it is now. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            AccountsError: it cannot be read, others may read it, or it has no user.
        """
        self.path = path
        self._signature, self._accounts = _read(path)
        self._room = threading.BoundedSemaphore(_WAITING)
        self._checking = threading.BoundedSemaphore(_AT_ONCE)
        if not self._accounts:
            raise AccountsError(path, "it has no user; rocketpy console-user makes one")

    def get(self, name: str) -> Account | None:
        """Return the account of a user; None if there is none.

        Raises:
            AccountsError: the file can be used no more: nobody is known then.
        """
        if _signature_of(self.path) != self._signature:
            self._signature, self._accounts = _read(self.path)
        return self._accounts.get(name)

    def checked(self, name: str, password: str) -> Account | None:
        """Return the account of a user who gave the right password.

        Raises:
            AccountsError: as get().
            LoginBusyError: others are being checked.
        """
        account = self.get(name)
        known = account or next(iter(self._accounts.values()), _NOBODY)
        if not self._room.acquire(blocking=False):
            raise LoginBusyError()
        try:
            with self._checking:
                digest = _digest(password[: MOST_PASSWORD + 1], known.salt, known.cost)
        finally:
            self._room.release()
        is_right = hmac.compare_digest(digest, known.digest)
        return account if is_right else None


# --- the file -------------------------------------------------------------------------------------


def put_account(
    path: Path, name: str, role: Role, password: str, *, cost: Cost | None = None
) -> bool:
    """Make a user, or give one another role and password; return whether it is a new one.

    A file that is missing is made, to be read by its owner alone.

    Raises:
        AccountsError: the name or the password cannot be, or the file cannot be used.
    """
    if not _NAME.fullmatch(name):
        reason = "give 1 to 64 letters, digits and . _ - @, a letter or digit first"
        raise AccountsError(path, f"the name {name[:80]!r} cannot be; {reason}")
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        what = f"the password has {len(password)} characters"
        raise AccountsError(path, f"{what}; give {LEAST_PASSWORD} to {MOST_PASSWORD}")
    account = Account.of(name, role, password, cost or Cost())
    with _locked(path):
        accounts = dict(_read(path)[1]) if path.exists() else {}
        is_new = name not in accounts
        _write(path, accounts | {name: account})
    return is_new


def remove_account(path: Path, name: str) -> None:
    """Take a user out of a file.

    Raises:
        AccountsError: there is none of that name, or the file cannot be used.
    """
    with _locked(path):
        accounts = dict(_read(path)[1])
        if accounts.pop(name, None) is None:
            raise AccountsError(path, f"there is no user {name[:80]!r}")
        _write(path, accounts)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Have others who change the file wait; what was changed is durable at the end."""
    try:
        folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as cause:
        raise AccountsError(path, f"its folder: {cause.strerror}") from cause
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(path: Path, accounts: Mapping[str, Account]) -> None:
    users = {name: accounts[name].members() for name in sorted(accounts)}
    data = json.dumps({"users": users}, indent=1).encode() + b"\n"
    folder = path.absolute().parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", delete=False) as new:
            new.write(data)
            new.flush()
            os.fsync(new.fileno())
        Path(new.name).replace(path)
    except OSError as cause:
        raise AccountsError(path, f"it cannot be written: {cause.strerror}") from cause


_Signature = tuple[int, int, int, int]


def _signature_of(path: Path) -> _Signature | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def _read(path: Path) -> tuple[_Signature | None, Mapping[str, Account]]:
    signature = _signature_of(path)
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST_BYTES + 1)
    except OSError as cause:
        remedy = "; rocketpy console-user makes it" if isinstance(cause, FileNotFoundError) else ""
        raise AccountsError(path, f"{cause.strerror}{remedy}") from cause
    if mode & _FOR_OTHERS:
        raise AccountsError(path, f"others may read or write it; chmod 600 {path}")
    try:
        if len(data) > _MOST_BYTES:
            raise ValueError(f"more than {_MOST_BYTES:,} bytes")
        users = json.loads(data)["users"]
        return signature, {name: _account(name, each) for name, each in users.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        reason = "it is no file of rocketpy console-user"
        raise AccountsError(path, f"{reason} ({type(cause).__name__})") from cause


def _account(name: str, members: Mapping[str, Any]) -> Account:
    cost = Cost(*map(int, members["cost"]))
    if members["role"] not in ROLES or not _NAME.fullmatch(name):
        raise ValueError("no such role, or no such name")
    if cost.memory > _MOST_COST or min(cost) < 1 or cost.p > 64:
        raise ValueError("no such cost")
    salt, digest = (base64.b64decode(members[key], validate=True) for key in ("salt", "hash"))
    if len(digest) != _HASH_BYTES or len(salt) < 8:
        raise ValueError("no such hash")
    return Account(name=name, role=members["role"], salt=salt, digest=digest, cost=cost)
