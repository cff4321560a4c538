"""RocketMQ's broker as a library: messages, codec, storage and metadata; no Spark, no server."""
