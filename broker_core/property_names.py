"""The names of all message properties that the code knows.

A property is a text with a name, kept in a record after its topic. Names that begin with
`ROCKETPY_` are ours; the others are Apache's (MessageConst) and have its spelling. All values are
text. docs/storage-format.md has the same table, and a test compares the two.
"""

from __future__ import annotations

# To find and to choose messages.
TAGS = "TAGS"  # the tag
KEYS = "KEYS"  # its keys, with blanks between them
UNIQ_KEY = "UNIQ_KEY"  # the unique key that its producer gave it; copies keep it
SHARDING_KEY = "__SHARDINGKEY"  # messages with the same one go to the same queue, in order
INSTANCE_ID = "INSTANCE_ID"  # the namespace of the producer that sent it

# Messages that wait.
DELAY = "DELAY"  # the delay level
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"  # when it is to be delivered
TIMER_DELAY_MS = "TIMER_DELAY_MS"  # after how many milliseconds it is to be delivered
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"  # after how many seconds it is to be delivered
TIMER_OUT_MS = "TIMER_OUT_MS"  # the second for whose end it waits
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"  # when the timer took it up
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"  # when the timer delivered it
TIMER_DELETE_KEY = "TIMER_DEL_UNIQKEY"  # of a recall: the unique key of the message recalled
REAL_TOPIC = "REAL_TOPIC"  # the topic to which it goes when it is due
REAL_QUEUE = "REAL_QID"  # the queue id there

# Transactions.
PRODUCER_GROUP = "PGROUP"  # the group of the producer that ends the transaction
TRANSACTION_PREPARED = "TRAN_MSG"  # it was sent within a transaction
TRANSACTION_ID = "__transactionId__"  # the transaction's id: the unique key
TRANSACTION_CHECKS = "TRANSACTION_CHECK_TIMES"  # how often its producer was asked
CHECK_IMMUNITY_S = "CHECK_IMMUNITY_TIME_IN_SECONDS"  # how long its producer is not asked
PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"  # the first queue offset of a half message

# Messages that were sent back, and dead letters.
RETRY_TOPIC = "RETRY_TOPIC"  # its first topic
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"  # its first message id
CAUSE = "ROCKETPY_CAUSE"  # why it was sent back
REPLAYED_FROM = "ROCKETPY_REPLAYED_FROM"  # its position among dead letters: topic/queue/offset
REPLAY_RUN = "ROCKETPY_REPLAY_RUN"  # the run that replayed it

# Requests that are messages, and replies to them.
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"  # the client that asked
CORRELATION_ID = "CORRELATION_ID"  # which request it is, or to which it is the reply
REQUEST_TTL = "TTL"  # for how many milliseconds the client waits for the reply
MESSAGE_TYPE = "MSG_TYPE"  # of a reply: "reply"
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"  # when the broker handed the reply to that client

# Storing.
WAIT = "WAIT"  # whether its sender waits until it is durable
CHECKSUM = "__CRC32#"  # the record check sum; no property to a reader
MSG_REGION = "MSG_REGION"  # the region of the broker that took it
TRACE_ON = "TRACE_ON"  # whether that broker wants it traced
CLUSTER = "CLUSTER"  # the cluster of that broker
INNER_BASE = "INNER_BASE"  # of a batch kept as one record: the offset of its first message
LOST = "ROCKETPY_LOST"  # an empty message that a repair put in the place of a lost one
