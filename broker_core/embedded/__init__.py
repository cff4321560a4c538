"""The embedded store: `rocketpy.open(path)`. A directory is the queue, no server is needed.

Any number of processes may open one store and append to it; readers take no locks. What `send`
and `append` return under flush="sync" survives a power loss; under flush="async", RocketMQ's
default, it survives the death of the process, and a power loss but for the last half second.
"""

from rocketpy.broker_core.embedded.boundary import StoreAccessError
from rocketpy.broker_core.embedded.retrying import SentBack
from rocketpy.broker_core.embedded.sending import AppendResult, Receipt
from rocketpy.broker_core.embedded.store import Store, open

__all__ = ["AppendResult", "Receipt", "SentBack", "Store", "StoreAccessError", "open"]
