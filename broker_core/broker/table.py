"""Which handler answers the requests of a code: one line for each."""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.broker.handlers import (
    cleaning,
    clients,
    configuration,
    groups,
    locks,
    offsets,
    progress,
    pulling,
    queries,
    relaying,
    replies,
    resetting,
    sending,
    sending_back,
    staging,
    statistics,
    topics,
    transactions,
)
from rocketpy.broker_core.net.service import Handler
from rocketpy.broker_core.protocol.codes import OwnCode, RequestCode
from rocketpy.broker_core.protocol.requests.clients import Heartbeat, UnregisterClient
from rocketpy.broker_core.protocol.requests.groups import (
    DeleteGroup,
    GetAllGroups,
    GetAllProducers,
    GetBrokerConsumeStats,
    GetConsumerConnections,
    GetConsumerList,
    GetConsumerRunningInfo,
    GetConsumeStats,
    GetGroup,
    GetProducerConnections,
    LockQueues,
    QueryGroupsOfTopic,
    QuerySubscriptionOfGroup,
    QueryTopicsOfGroup,
    UnlockQueues,
)
from rocketpy.broker_core.protocol.requests.offsets import (
    CloneGroupOffset,
    GetConsumerStatus,
    GetEarliestStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    QueryConsumeTimeSpan,
    QueryCorrectionOffset,
    ResetOffset,
    SearchOffset,
    UpdateConsumerOffset,
)
from rocketpy.broker_core.protocol.requests.reading import (
    ConsumeDirectly,
    PullMessage,
    QueryConsumeQueue,
    QueryMessage,
    ViewMessage,
)
from rocketpy.broker_core.protocol.requests.sending import (
    RecallMessage,
    SendMessage,
    SendMessageBack,
    SendMessageV1,
)
from rocketpy.broker_core.protocol.requests.staging import (
    AskStaged,
    CommitStaged,
    DropStaged,
    StageRows,
)
from rocketpy.broker_core.protocol.requests.topics import (
    CreateTopic,
    DeleteTopic,
    GetAllTopics,
    GetTopic,
    GetTopicStats,
    ViewStats,
)
from rocketpy.broker_core.protocol.requests.transactions import EndTransaction

HANDLERS: Mapping[int, Handler] = {
    # --- messages ---------------------------------------------------------------------------------
    RequestCode.SEND_MESSAGE_V2: Handler(sending.send, None),
    RequestCode.SEND_MESSAGE: Handler(sending.send_old, None),
    RequestCode.SEND_BATCH_MESSAGE: Handler(sending.send_batch, None),
    RequestCode.CONSUMER_SEND_MSG_BACK: Handler(
        sending_back.send_back, SendMessageBack, blocks=True
    ),
    RequestCode.RECALL_MESSAGE: Handler(sending_back.recall, RecallMessage),
    RequestCode.SEND_REPLY_MESSAGE: Handler(replies.reply_v1, SendMessageV1),
    RequestCode.SEND_REPLY_MESSAGE_V2: Handler(replies.reply, SendMessage),
    RequestCode.END_TRANSACTION: Handler(transactions.end, EndTransaction),
    RequestCode.PULL_MESSAGE: Handler(pulling.pull, PullMessage),
    RequestCode.LITE_PULL_MESSAGE: Handler(pulling.pull, PullMessage),
    # --- offsets ----------------------------------------------------------------------------------
    RequestCode.QUERY_CONSUMER_OFFSET: Handler(
        offsets.consumer_offset, QueryConsumerOffset, blocks=True
    ),
    RequestCode.UPDATE_CONSUMER_OFFSET: Handler(
        offsets.update_consumer_offset, UpdateConsumerOffset
    ),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: Handler(
        offsets.search_offset, SearchOffset, blocks=True
    ),
    RequestCode.GET_MAX_OFFSET: Handler(offsets.max_offset, GetMaxOffset),
    RequestCode.GET_MIN_OFFSET: Handler(offsets.min_offset, GetMinOffset),
    RequestCode.GET_EARLIEST_MSG_STORETIME: Handler(
        offsets.earliest_store_time, GetEarliestStoreTime, blocks=True
    ),
    RequestCode.GET_ALL_CONSUMER_OFFSET: Handler(offsets.all_consumer_offsets, None, blocks=True),
    RequestCode.QUERY_CORRECTION_OFFSET: Handler(
        offsets.correction_offsets, QueryCorrectionOffset, blocks=True
    ),
    RequestCode.CLONE_GROUP_OFFSET: Handler(offsets.clone_offsets, CloneGroupOffset),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: Handler(resetting.reset_offsets, ResetOffset),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Handler(
        relaying.consumer_status, GetConsumerStatus
    ),
    RequestCode.QUERY_CONSUME_TIME_SPAN: Handler(
        progress.consume_time_span, QueryConsumeTimeSpan, blocks=True
    ),
    # --- clients and groups -----------------------------------------------------------------------
    RequestCode.HEART_BEAT: Handler(clients.heartbeat, Heartbeat),
    RequestCode.UNREGISTER_CLIENT: Handler(clients.unregister, UnregisterClient),
    RequestCode.CHECK_CLIENT_CONFIG: Handler(clients.check_subscription, None),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: Handler(clients.consumer_list, GetConsumerList),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: Handler(
        clients.consumer_connections, GetConsumerConnections
    ),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: Handler(
        clients.producer_connections, GetProducerConnections
    ),
    RequestCode.GET_ALL_PRODUCER_INFO: Handler(clients.all_producers, GetAllProducers),
    RequestCode.GET_CONSUMER_RUNNING_INFO: Handler(relaying.running_info, GetConsumerRunningInfo),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: Handler(relaying.consume_directly, ConsumeDirectly),
    RequestCode.LOCK_BATCH_MQ: Handler(locks.lock_queues, LockQueues),
    RequestCode.UNLOCK_BATCH_MQ: Handler(locks.unlock_queues, UnlockQueues),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Handler(
        groups.update_group, None, blocks=True
    ),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Handler(
        groups.update_groups, None, blocks=True
    ),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Handler(
        groups.all_groups, GetAllGroups, blocks=True
    ),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Handler(groups.get_group, GetGroup, blocks=True),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: Handler(groups.delete_group, DeleteGroup, blocks=True),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: Handler(groups.groups_of_topic, QueryGroupsOfTopic),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: Handler(
        groups.topics_of_group, QueryTopicsOfGroup, blocks=True
    ),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: Handler(
        groups.subscription_of_group, QuerySubscriptionOfGroup
    ),
    RequestCode.GET_CONSUME_STATS: Handler(progress.consume_stats, GetConsumeStats),
    RequestCode.GET_BROKER_CONSUME_STATS: Handler(
        progress.broker_consume_stats, GetBrokerConsumeStats
    ),
    RequestCode.QUERY_MESSAGE: Handler(queries.query, QueryMessage, blocks=True),
    RequestCode.VIEW_MESSAGE_BY_ID: Handler(queries.view, ViewMessage, blocks=True),
    # --- topics -----------------------------------------------------------------------------------
    RequestCode.UPDATE_AND_CREATE_TOPIC: Handler(topics.create_topic, CreateTopic, blocks=True),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Handler(topics.create_topics, None, blocks=True),
    RequestCode.GET_ALL_TOPIC_CONFIG: Handler(topics.all_topics, GetAllTopics, blocks=True),
    RequestCode.GET_TOPIC_CONFIG: Handler(topics.get_topic, GetTopic, blocks=True),
    RequestCode.GET_TOPIC_STATS_INFO: Handler(topics.topic_stats, GetTopicStats, blocks=True),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: Handler(topics.system_topics, None, blocks=True),
    RequestCode.QUERY_CONSUME_QUEUE: Handler(topics.queue_entries, QueryConsumeQueue, blocks=True),
    RequestCode.DELETE_TOPIC_IN_BROKER: Handler(topics.delete_topic, DeleteTopic, blocks=True),
    # --- the broker itself ------------------------------------------------------------------------
    RequestCode.GET_BROKER_CONFIG: Handler(configuration.get_settings, None),
    RequestCode.UPDATE_BROKER_CONFIG: Handler(configuration.update_settings, None, blocks=True),
    RequestCode.GET_BROKER_RUNTIME_INFO: Handler(statistics.runtime, None),
    RequestCode.VIEW_BROKER_STATS_DATA: Handler(statistics.view_stats, ViewStats),
    RequestCode.GET_BROKER_HA_STATUS: Handler(statistics.replica_status, None, blocks=True),
    RequestCode.GET_BROKER_EPOCH_CACHE: Handler(statistics.epochs, None),
    RequestCode.GET_ALL_DELAY_OFFSET: Handler(statistics.delay_offsets, None, blocks=True),
    RequestCode.GET_TIMER_METRICS: Handler(statistics.timed_messages, None, blocks=True),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: Handler(
        cleaning.clean_expired_queues, None, blocks=True
    ),
    RequestCode.CLEAN_UNUSED_TOPIC: Handler(cleaning.clean_unused_topics, None, blocks=True),
    RequestCode.DELETE_EXPIRED_COMMITLOG: Handler(cleaning.delete_expired_log, None, blocks=True),
    # --- batches of Spark: ours alone -------------------------------------------------------------
    OwnCode.ASK_STAGED: Handler(staging.ask, AskStaged, blocks=True),
    OwnCode.STAGE_ROWS: Handler(staging.stage, StageRows, blocks=True),
    OwnCode.COMMIT_STAGED: Handler(staging.commit, CommitStaged, blocks=True),
    OwnCode.DROP_STAGED: Handler(staging.drop, DropStaged, blocks=True),
}
