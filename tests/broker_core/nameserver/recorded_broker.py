"""What an Apache broker said and was answered when it registered: recorded frames, made whole."""

from __future__ import annotations

from functools import cache

from tests.broker_core.protocol.recordings import Recorded, bytes_of, recorded

# The recording of the one long body was cut; the check sum in its header says that this is left.
_REST = 'g":0,"writeQueueNums":1}},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}}'


@cache
def exchanges() -> list[tuple[Recorded, Recorded]]:
    """Return requests to a name server, each with its answer, in their order."""
    asked: dict[tuple[int, int], Recorded] = {}
    found = []
    for frame in recorded():
        if frame.get("peer") != "namesrv" or ("answersCode" not in frame and frame["response"]):
            continue
        key = (frame["conn"], frame["opaque"])
        if not frame["response"]:
            asked[key] = frame
        elif key in asked:
            found.append((asked.pop(key), frame))
    return found


def request_bytes(frame: Recorded) -> bytes:
    """Return the whole frame of a request."""
    data = bytes_of(frame)
    if frame["code"] != 103:
        return data
    text: str = frame["bodyText"].removesuffix("…") + _REST
    return data[: -frame["bodyLength"]] + text.encode()
