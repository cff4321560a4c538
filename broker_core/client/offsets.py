"""Offsets in a cluster: the ends of queues, what was stored when, and how far groups have read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rocketpy.broker_core.client.asking import Silent, ask_each
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import ServerRefusedError, refusal
from rocketpy.broker_core.client.pulled import PULL_ANSWERS, Pulled, PullRequest
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import (
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    SearchOffset,
    UpdateConsumerOffset,
)
from rocketpy.broker_core.protocol.requests.request import OffsetAnswer, Request


class ClusterOffsets:
    """The offsets of one cluster. Each call asks for all its queues at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def ranges(self, queues: Sequence[MessageQueue]) -> dict[MessageQueue, tuple[int, int]]:
        """Return the first offset of each queue, and its end."""
        found, silent = self.ranges_in_reach(queues)
        for failure in silent.values():
            raise failure
        return found

    def ranges_in_reach(
        self, queues: Sequence[MessageQueue]
    ) -> tuple[dict[MessageQueue, tuple[int, int]], dict[str, Silent]]:
        """Return the same of the brokers that answer; and of the others, why they do not.

        Masters alone are asked: a slave may be behind. See ranges_at_slaves().
        """
        offsets: list[int | None] = []
        silent: dict[str, Silent] = {}
        for broker, answer in self._ask_for_ranges(queues, self._cluster.master_of):
            if isinstance(answer, RemotingCommand):
                offsets.append(_offset(self._cluster.check(broker, answer)))
            else:
                offsets.append(None)
                silent[broker] = answer
        return _joined(queues, offsets), silent

    def ranges_around(
        self, messages: Sequence[tuple[MessageQueue, int]]
    ) -> tuple[list[Pulled], dict[str, Silent]]:
        """Return single messages, whose answers say the ranges of their queues as well.

        One request for each queue, where ranges_in_reach() has two. Masters alone are asked. What
        is refused is left out; of brokers that do not answer it is said why.
        """
        request = PullRequest()
        asked = [(queue.broker, request.command(queue, at, most=1)) for queue, at in messages]
        pulled: list[Pulled] = []
        silent: dict[str, Silent] = {}
        answers = ask_each(self._cluster, asked, self._cluster.master_of)
        for (queue, at), answer in zip(messages, answers, strict=True):
            if not isinstance(answer, RemotingCommand):
                silent[queue.broker] = answer
            elif answer.code in PULL_ANSWERS:
                pulled.append(request.pulled(queue, at, answer))
        return pulled, silent

    def ranges_at_slaves(
        self, queues: Sequence[MessageQueue]
    ) -> dict[MessageQueue, tuple[int, int]]:
        """Return what slaves hold of queues whose master is out of reach: it may be less.

        Queues without a slave that gives messages are left out.
        """
        readable = self._readable_slaves({queue.broker: queue for queue in queues})
        queues = [queue for queue in queues if queue.broker in readable]
        offsets = [
            # A slave that refuses does not know the topic yet.
            _offset(answer)
            if isinstance(answer, RemotingCommand) and answer.code == ResponseCode.SUCCESS
            else None
            for _, answer in self._ask_for_ranges(queues, self._cluster.slave_of)
        ]
        return _joined(queues, offsets)

    def _readable_slaves(self, queues: Mapping[str, MessageQueue]) -> set[str]:
        """Return the brokers whose slaves give messages, of one queue each.

        Apache's of 5.x say that they are busy unless they have `slaveReadEnable`; those of 4.x
        give what they have, whatever that setting is.
        """
        request = PullRequest()
        asked = [(name, request.command(queue, 0, most=1)) for name, queue in queues.items()]
        found = set()
        for (name, _), answer in zip(
            asked, ask_each(self._cluster, asked, self._cluster.slave_of), strict=True
        ):
            if isinstance(answer, RemotingCommand) and answer.code in PULL_ANSWERS:
                found.add(name)
        return found

    def _ask_for_ranges(
        self, queues: Sequence[MessageQueue], address_of: Callable[[str], str]
    ) -> Iterable[tuple[str, RemotingCommand | Silent]]:
        """Return two answers of each queue's broker: on its first offset, and on its end."""
        asked = [
            (each.broker, command_of(kind(topic=each.topic, queue_id=each.queue_id)))
            for each in queues
            for kind in (GetMinOffset, GetMaxOffset)
        ]
        answers = ask_each(self._cluster, asked, address_of)
        return zip([broker for broker, _ in asked], answers, strict=True)

    def by_time(self, queues: Sequence[MessageQueue], time_ms: int) -> dict[MessageQueue, int]:
        """Return of each queue the offset of the first message stored at a time or later."""
        return self._offsets(
            queues,
            [
                SearchOffset(
                    topic=each.topic,
                    queue_id=each.queue_id,
                    timestamp=time_ms,
                    boundary_type="LOWER",
                )
                for each in queues
            ],
        )

    def committed(self, group: str, queues: Sequence[MessageQueue]) -> dict[MessageQueue, int]:
        """Return where a group reads on, without the queues that it never committed."""
        return self._offsets(
            queues,
            [
                QueryConsumerOffset(
                    consumer_group=group,
                    topic=each.topic,
                    queue_id=each.queue_id,
                    set_zero_if_not_found=False,  # 4.x does not know it, and may say 0
                )
                for each in queues
            ],
        )

    def commit(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Note where a group reads on; brokers make it durable within seconds.

        All brokers are told, also if one of them fails. The first queue of a topic goes ahead:
        told of two at once, Apache's broker (ConsumerOffsetManager) makes the table of a new group
        twice, and forgets one of them.

        Raises:
            ServerUnreachableError, NoBrokerError: a broker does not answer.
            ServerRefusedError: a broker does not know the group, or the topic.
        """
        by_topic = {(queue.broker, queue.topic): queue for queue in offsets}
        ahead = {*by_topic.values()}
        rounds = ([*ahead], [queue for queue in offsets if queue not in ahead])
        failures = [
            failure
            for queues in rounds
            for failure in self._commit(group, {queue: offsets[queue] for queue in queues})
        ]
        # What a broker refuses, such as a group that it does not know, can be seen to.
        for failure in sorted(failures, key=lambda each: not isinstance(each, ServerRefusedError)):
            raise failure

    def _commit(self, group: str, offsets: Mapping[MessageQueue, int]) -> list[Exception]:
        """Tell the brokers at once; return what went wrong."""
        commands = [
            (
                queue.broker,
                command_of(
                    UpdateConsumerOffset(
                        consumer_group=group,
                        topic=queue.topic,
                        queue_id=queue.queue_id,
                        commit_offset=queue_offset,
                    )
                ),
            )
            for queue, queue_offset in offsets.items()
        ]
        failures: list[Exception] = []
        answers = ask_each(self._cluster, commands, self._cluster.master_of)
        for (broker, _), answer in zip(commands, answers, strict=True):
            if not isinstance(answer, RemotingCommand):
                failures.append(answer)
            elif answer.code != ResponseCode.SUCCESS:
                failures.append(refusal(f"broker {broker}", answer))
        return failures

    def _offsets(
        self, queues: Iterable[MessageQueue], requests: Iterable[Request]
    ) -> dict[MessageQueue, int]:
        asked = [*zip(queues, requests, strict=True)]
        commands = [(queue.broker, command_of(request)) for queue, request in asked]
        found = {}
        for (queue, _), (broker, answer) in zip(
            asked, self._cluster.ask_brokers(commands), strict=True
        ):
            if answer.code != ResponseCode.QUERY_NOT_FOUND:
                found[queue] = _offset(self._cluster.check(broker, answer))
        return found


def _joined(
    queues: Sequence[MessageQueue], offsets: Sequence[int | None]
) -> dict[MessageQueue, tuple[int, int]]:
    """Return the range of each queue whose first offset and end are known."""
    return {
        queue: (first, max(first, end))
        for queue, first, end in zip(queues, offsets[::2], offsets[1::2], strict=True)
        if first is not None and end is not None
    }


def _offset(answer: RemotingCommand) -> int:
    return OffsetAnswer.decode(answer.fields).offset
