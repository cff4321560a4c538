"""What a cluster says when it does not do what it is asked, as errors of ours: one table."""

from __future__ import annotations

from typing import NamedTuple

from rocketpy.broker_core.client.denials import Denial, Denied, denial_of
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand


class ServerRefusedError(RocketPyError):
    """Is raised when a broker or a name server refuses a request: says which, why, what to do."""

    def __init__(self, server: str, code: int, remark: str) -> None:
        super().__init__(server, code, remark)
        self.server, self.code, self.remark = server, code, remark

    def __str__(self) -> str:
        try:
            name = ResponseCode(self.code).name
        except ValueError:
            name = "a code that we do not know"
        why = f": {self.remark.strip()}" if self.remark.strip() else ""
        return f"{self.server} refuses it (code {self.code}, {name}){why}; {self.remedy}"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _meaning(self.code).remedy


class ServerBusyError(ServerRefusedError):
    """Is raised when a server has too much to do now, or stops: the same may succeed later."""

    retriable = True


class AccessRefusedError(ServerRefusedError):
    """Is raised when a topic, a group or a broker is closed for what is asked."""


class _InOurWords:
    """What the errors of protected brokers have in common: they say it in our words."""

    server: str
    code: int
    remark: str

    @property
    def denial(self) -> Denial:
        """What is refused, and to whom."""
        return denial_of(self.code, self.remark) or Denial(Denied.OTHER)

    def __str__(self) -> str:
        words = f" ({self.remark.strip()})" if self.denial.kind is Denied.OTHER else ""
        return f"{self.server} refuses it: {self.denial}{words}; {self.remedy}"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.denial.kind.value[1]


class IdentityRefusedError(_InOurWords, AccessRefusedError):
    """Is raised when a protected broker does not know who asks: no key, another one, its secret."""


class PermissionRefusedError(_InOurWords, AccessRefusedError):
    """Is raised when a protected broker knows who asks, and does not permit it: says for what."""


class FilterRefusedError(ServerRefusedError):
    """Is raised when a broker cannot understand a filter, or does not filter so."""


class MissingThereError(ServerRefusedError):
    """Is raised when a broker does not know the topic or the group that a request names."""


class NoBrokerError(RocketPyError):
    """Is raised when a cluster has no broker that could do what is asked."""

    retriable = True

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


class ClientClosedError(RocketPyError):
    """Is raised when a client is used that was closed."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} was closed; connect again"


class OtherLoopError(RocketPyError):
    """Is raised when a client is used in another loop than the one it belongs to."""

    def __init__(self, client: str) -> None:
        super().__init__(client)
        self.client = client

    def __str__(self) -> str:
        return f"{self.client} belongs to another loop: connect once in each loop"


class NoReplyError(RocketPyError):
    """Is raised when no reply to a request came in time."""

    retriable = True

    def __init__(self, topic: str, timeout_s: float) -> None:
        super().__init__(topic, timeout_s)
        self.topic, self.timeout_s = topic, timeout_s

    def __str__(self) -> str:
        return (
            f"no reply to a request on topic {self.topic!r} in {self.timeout_s:g} s; does somebody "
            "consume it and reply? The request may still be answered later, to nobody"
        )


class FolderOnlyError(RocketPyError):
    """Is raised when a cluster is asked for what can be done with the folder of a store only."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(what, instead)
        self.what, self.instead = what, instead

    def __str__(self) -> str:
        return f"{self.what} is only possible with the folder of a store; {self.instead}"


class _Meaning(NamedTuple):
    error: type[ServerRefusedError]
    remedy: str


_LATER = "try again in a moment"
_DEFAULT = _Meaning(ServerRefusedError, "its log says more")
_MEANINGS: dict[int, _Meaning] = {
    ResponseCode.SYSTEM_BUSY: _Meaning(ServerBusyError, _LATER),
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: _Meaning(
        ServerRefusedError, "it is of a version that cannot do it"
    ),
    ResponseCode.MESSAGE_ILLEGAL: _Meaning(
        ServerRefusedError, "make the message, its properties or its topic's name smaller"
    ),
    ResponseCode.SERVICE_NOT_AVAILABLE: _Meaning(
        ServerBusyError, "it stops, or its disk is full: look at it, then try again"
    ),
    ResponseCode.NO_PERMISSION: _Meaning(
        AccessRefusedError,
        "'rocketpy topic describe' shows a topic's access, 'rocketpy topic update --perm' sets it",
    ),
    ResponseCode.TOPIC_NOT_EXIST: _Meaning(
        MissingThereError, "make it with 'rocketpy topic create'"
    ),
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: _Meaning(FilterRefusedError, "mend the filter"),
    ResponseCode.SUBSCRIPTION_NOT_EXIST: _Meaning(
        MissingThereError, "a consumer subscribes with its heartbeats: send one"
    ),
    ResponseCode.SUBSCRIPTION_NOT_LATEST: _Meaning(ServerBusyError, _LATER),
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: _Meaning(
        MissingThereError, "make it with 'rocketpy group create'"
    ),
    ResponseCode.FILTER_DATA_NOT_EXIST: _Meaning(
        FilterRefusedError, "send a heartbeat with the subscription first"
    ),
    ResponseCode.FILTER_DATA_NOT_LATEST: _Meaning(FilterRefusedError, _LATER),
    ResponseCode.FLOW_CONTROL: _Meaning(ServerBusyError, "ask less often"),
    ResponseCode.GO_AWAY: _Meaning(ServerBusyError, "it stops: ask another one"),
}


def _meaning(code: int) -> _Meaning:
    return _MEANINGS.get(code, _DEFAULT)


def good(answer: RemotingCommand, server: str) -> RemotingCommand:
    """Return an answer of a server.

    Raises:
        ServerRefusedError: it says that something could not be done.
    """
    if answer.code != ResponseCode.SUCCESS:
        raise refusal(server, answer)
    return answer


def refusal(server: str, answer: RemotingCommand) -> ServerRefusedError:
    """Return the error that an answer means."""
    if (denial := denial_of(answer.code, answer.remark or "")) is not None:
        is_about_identity = denial.kind.is_about_identity
        error = IdentityRefusedError if is_about_identity else PermissionRefusedError
        return error(server, answer.code, answer.remark or "")
    return _meaning(answer.code).error(server, answer.code, answer.remark or "")
