"""The options of writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketpy.broker_core.codec.compression import CODECS
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.metadata.names import check_topic_name
from rocketpy.connector.options import Given, Option, OptionError

WRITE_OPTIONS: tuple[Option, ...] = (
    Option("path", "a folder", "required", "the store; made if it is missing"),
    Option(
        "topic",
        "a name",
        "the column `topic`",
        "where all rows go; wins over the column. A topic that is missing is made",
    ),
    Option("queues", "1 and up", "4", "how many queues a topic gets that is made"),
    Option("compress", "zlib, lz4 or zstd", "not compressed", "how bodies are stored"),
    Option(
        "txnAppId",
        "a name",
        "none",
        "with `txnVersion`, in a batch write: a version that this name has written to the topic "
        "before, or a lower one, is skipped. For writes inside `foreachBatch`",
    ),
    Option("txnVersion", "0 and up", "none", "the number of this write, such as the batch id"),
    Option("checkpointLocation", "a folder", "Spark's", "Spark's own: where a query keeps offsets"),
    Option("queryName", "a name", "Spark's", "Spark's own: the name of the query"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write was asked for."""

    path: str
    topic: str | None = None
    queues: int | None = None
    compress: str | None = None
    app_id: str | None = None
    version: int = 0

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Read Spark's options.

        Raises:
            OptionError: one is missing, unknown or wrong.
        """
        given = Given(options, WRITE_OPTIONS)
        topic, app_id, version = given.text("topic"), given.text("txnAppId"), _version(given)
        if (app_id is None) != (version is None):
            missing = "txnVersion" if version is None else "txnAppId"
            other = "txnAppId" if version is None else "txnVersion"
            raise OptionError(missing, f"is missing; '{other}' means nothing without it")
        if topic is not None:
            try:
                check_topic_name(topic)
            except TopicNameError as cause:
                raise OptionError("topic", str(cause)) from cause
        return cls(
            path=given.required("path"),
            topic=topic,
            queues=given.count("queues"),
            compress=given.choice("compress", CODECS),
            app_id=app_id,
            version=version or 0,
        )


def _version(given: Given) -> int | None:
    text = given.text("txnVersion")
    if text is not None and not (text.isascii() and text.isdigit()):
        raise OptionError("txnVersion", f"is '{text}'; give a whole number of at least 0")
    return int(text) if text is not None else None
