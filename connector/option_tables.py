"""Every option of `format("rocketpy")`, in the words of docs/options.md."""

from __future__ import annotations

from rocketpy.connector.options import Option

READ_OPTIONS = (
    Option("path", "a folder", "", "The store to read; `load(path)` does as well."),
    Option(
        "namesrvAddr",
        "`ns1:9876;ns2:9876`, or `rocketmq://…`",
        "",
        "The name servers of the cluster to read, instead of `path`; see "
        "[your cluster](your-cluster.md)",
    ),
    Option("topic", "a name, or several with commas", "", "The topics to read."),
    Option(
        "topicPattern",
        "a regular expression",
        "",
        "Reads every topic whose whole name matches, those made later included; "
        "RocketMQ's own topics have to be named by `topic`; those of retries and dead letters "
        "match if the pattern has a `%`.",
    ),
    Option(
        "queues",
        'JSON: `{"orders": [0, 2]}`',
        "",
        "Reads these queues alone.",
    ),
    Option(
        "consumerGroup",
        "a name",
        "",
        "The group whose offsets are read (`group`) and, in streams, committed.",
    ),
    Option(
        "includeRetry",
        "`true` or `false`",
        "`false`",
        "Reads the retry topic of the `consumerGroup` as well, from the moment it is there; see "
        "[retry.md](retry.md).",
    ),
    Option(
        "member",
        "a name, unique in the group",
        "",
        "Streams only: joins the group under this name and reads the queues that are its own; "
        "see rebalance.md.",
    ),
    Option(
        "messageModel",
        "`clustering` or `broadcasting`",
        "`clustering`",
        "Whether the members of a group share the queues, or each reads all of them and keeps "
        "offsets of its own; see ordering.md.",
    ),
    Option(
        "rebalanceStrategy",
        "a strategy of rebalance.md",
        "that of the last generation, or `averagely`",
        "How a member divides the queues when members or queues changed and no job did it before.",
    ),
    Option(
        "memberLease",
        "a time: `30s`, `5m`",
        "`30s`",
        "How long the others wait for a member that died before they take its queues.",
    ),
    Option(
        "besideConsumers",
        "`true` or `false`",
        "`false`",
        "With `namesrvAddr`: lets a `member` start though other clients, Java's say, consume with "
        "its group now. Both read the same queues then; see [rebalance.md](rebalance.md).",
    ),
    Option(
        "startingOffsets",
        '`earliest`, `latest`, `group`, or JSON: `{"orders": {"0": 42, "1": -2}}`',
        "`group` with a `consumerGroup`; else `earliest` in batch, `latest` in streams",
        "Where a batch or a new stream starts. -2 is the earliest offset, -1 the latest; queues "
        "that are not named, or that the group has not committed, start at the earliest.",
    ),
    Option(
        "endingOffsets",
        "as `startingOffsets`",
        "`latest`",
        "Batch only: where reading ends; the offset itself is not read.",
    ),
    Option(
        "startingTimestamp",
        'milliseconds since 1970, `2026-01-31T08:00:00Z`, or JSON: `{"orders": {"0": '
        "1769846400000}}`",
        "",
        "Starts each queue at the first message stored at this time or later; in JSON each queue "
        "has a time of its own, and those that are not named start at the earliest offset.",
    ),
    Option(
        "endingTimestamp",
        "as `startingTimestamp`",
        "",
        "Batch only: ends each queue before the first message stored at this time or later; "
        "queues that JSON does not name end at the latest offset.",
    ),
    Option(
        "startingLogOffset",
        "a physical offset",
        "where the log begins",
        "Batch only: reads messages whose records begin at this byte of the commit log or after "
        "it.",
    ),
    Option(
        "endingLogOffset",
        "a physical offset",
        "where the log ends",
        "Batch only: reads messages whose records begin before this byte of the commit log.",
    ),
    Option(
        "startingTimestampStrategy",
        "`latest` or `error`",
        "`latest`",
        "What to do with a queue that has no message of that time or later: start at its end, or "
        "fail.",
    ),
    Option("maxRowsPerTrigger", "a number", "no limit", "The most messages of a micro-batch."),
    Option(
        "maxBytesPerTrigger",
        "a number, or `64m`",
        "no limit",
        "The most bytes of a micro-batch, as stored; it has at least one message, and four million "
        "at most.",
    ),
    Option(
        "minRowsPerTrigger",
        "a number",
        "1",
        "A micro-batch waits until that many messages are there, or `maxTriggerDelay` is over.",
    ),
    Option(
        "maxTriggerDelay",
        "a time: `30s`, `5m`",
        "`15m`",
        "How long `minRowsPerTrigger` may wait; how long `availableNow` waits for queues that "
        "other members still hold.",
    ),
    Option(
        "minPartitions",
        "a number",
        "one partition a queue; one for all in micro-batches of up to 2,000 messages",
        "Splits queues, the longest first, or the commit log, until there are that many "
        "partitions.",
    ),
    Option(
        "maxRowsPerPartition",
        "a number",
        "no limit",
        "Splits queues so that no partition has more messages. Within a partition messages keep "
        "the order of their queue; partitions of one queue follow each other in it.",
    ),
    Option("tags", "`paid || shipped`, or `*`", "`*`", "Reads messages with one of these tags."),
    Option(
        "sql",
        "an SQL92 filter: `region = 'eu' AND amount > 10`",
        "",
        "Reads messages whose properties pass, see [filters](filters.md). With a `consumerGroup` "
        "that registered the same filter with an Apache broker, the broker's bit maps are used.",
    ),
    Option(
        "keys",
        "names with commas, or a JSON list",
        "",
        "Reads messages that have one of these keys; in batch through the index.",
    ),
    Option(
        "failOnDataLoss",
        "`true` or `false`",
        "`true`",
        "Whether the query stops if messages are gone before they were read.",
    ),
    Option(
        "failOnDamage",
        "`true` or `false`",
        "`true`",
        "With `scan=commitlog`: whether a damaged record stops the read, or is passed over with "
        "a warning.",
    ),
    Option(
        "commitOffsets",
        "`true` or `false`",
        "`true` with a `consumerGroup`",
        "Whether a stream notes its offsets in the group, batch by batch.",
    ),
    Option(
        "view",
        "`messages`, `queues`, `index`, `groups` or `topics`",
        "`messages`",
        "Which part of the store is read; `index`, `groups` and `topics` in batch only.",
    ),
    Option(
        "columns",
        "names with commas, or `*`",
        "the default columns",
        "What is decoded: the fewer, the faster.",
    ),
    Option(
        "scan",
        "`queues` or `commitlog`",
        "`queues`",
        "Batch only. `commitlog` reads the log itself in its order, all topics if none is "
        "given, and needs no queues.",
    ),
    Option("decompress", "`true` or `false`", "`true`", "Whether bodies are decompressed."),
    Option(
        "credentials",
        "the path of a file",
        "the environment",
        "With `namesrvAddr`: who asks, for protected clusters; the file has to be where drivers "
        "and tasks run. See [access](access.md).",
    ),
    Option(
        "tls",
        "`on`, `off`, or the path of a file",
        "the environment, or `off`",
        "With `namesrvAddr`: whether connections are encrypted, and whom to trust. See "
        "[access](access.md).",
    ),
    Option(
        "requestTimeout",
        "a time: `500ms`, `5s`",
        "`5s`",
        "With `namesrvAddr`: how long a server may take to answer a request.",
    ),
    Option(
        "retryTimeout",
        "a time: `30s`, `5m`",
        "`1m`",
        "With `namesrvAddr`: how long a server that does not answer is tried again, before the "
        "query stops.",
    ),
    Option(
        "pullBatchSize",
        "a number",
        "4096",
        "With `namesrvAddr`: how many messages one request asks for. Brokers give no more than "
        "their settings allow: 32 by default.",
    ),
)

WRITE_OPTIONS = (
    Option("path", "a folder", "", "the store; made if it is missing"),
    Option(
        "namesrvAddr",
        "`ns1:9876;ns2:9876`, or `rocketmq://…`",
        "",
        "the name servers of the cluster to write to, instead of `path`; see "
        "[your cluster](your-cluster.md)",
    ),
    Option(
        "topic",
        "a name",
        "the column `topic`",
        "where all rows go; wins over the column. A topic that is missing is made",
    ),
    Option("queues", "1 and up", "4", "how many queues a new topic gets"),
    Option("compress", "zlib, lz4 or zstd", "not compressed", "how bodies are stored"),
    Option(
        "propertyColumns",
        "names with commas",
        "none",
        "string columns that become properties of these names, besides the map `properties`; "
        "cheaper than a map. Null is no property",
    ),
    Option(
        "txnAppId",
        "a name",
        "none",
        "with `txnVersion`, in a batch write: the last version that this name has written to the "
        "topic is skipped, a lower one is refused. For writes inside `foreachBatch`",
    ),
    Option("txnVersion", "0 and up", "none", "the number of this write, such as the batch id"),
    Option(
        "lockTimeout",
        "a time: `30s`, `5m`",
        "`30s`",
        "how long a commit tries to get the store's lock while another process has it, before the "
        "batch fails",
    ),
    Option(
        "credentials",
        "the path of a file",
        "the environment",
        "with `namesrvAddr`: who asks, for protected clusters; the file has to be where drivers "
        "and tasks run. See [access](access.md)",
    ),
    Option(
        "tls",
        "`on`, `off`, or the path of a file",
        "the environment, or `off`",
        "with `namesrvAddr`: whether connections are encrypted, and whom to trust. See "
        "[access](access.md)",
    ),
    Option(
        "requestTimeout",
        "a time: `500ms`, `5s`",
        "`5s`",
        "with `namesrvAddr`: how long a server may take to answer a request",
    ),
    Option(
        "retryTimeout",
        "a time: `30s`, `5m`",
        "`1m`",
        "with `namesrvAddr`: how long a server that does not answer is tried again, before the "
        "batch fails",
    ),
    Option("checkpointLocation", "a folder", "Spark's", "Spark's own: where a query keeps offsets"),
    Option("queryName", "a name", "Spark's", "Spark's own: the name of the query"),
)
