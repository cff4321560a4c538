"""A RocketMQ for tests: name server and brokers in a thread, with faults on demand."""

from rocketpy.broker_core.local.handle import LocalBroker, local_broker

__all__ = ["LocalBroker", "local_broker"]
