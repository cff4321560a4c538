"""The options of writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketpy.broker_core.codec.compression import CODECS
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.metadata.names import check_topic_name
from rocketpy.broker_core.property_names import CHECKSUM, KEYS, SHARDING_KEY, TAGS, UNIQ_KEY
from rocketpy.connector.cluster_options import ClusterOptions, parse_place
from rocketpy.connector.option_tables import WRITE_OPTIONS
from rocketpy.connector.options import Given, OptionError
from rocketpy.connector.write_columns import COLUMNS

RESERVED_PROPERTIES = (UNIQ_KEY, KEYS, TAGS, SHARDING_KEY, CHECKSUM)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write was asked for, to a folder (`path`) or to a `cluster`."""

    path: str | None = None
    cluster: ClusterOptions | None = None
    topic: str | None = None
    queues: int | None = None
    compress: str | None = None
    property_columns: tuple[str, ...] = ()
    app_id: str | None = None
    version: int = 0
    lock_timeout_s: float = 30

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Read Spark's options.

        Raises:
            OptionError: one is missing, unknown or wrong.
        """
        given = Given(options, WRITE_OPTIONS)
        path, cluster = parse_place(given)
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
            path=path,
            cluster=cluster,
            topic=topic,
            queues=given.count("queues"),
            compress=given.choice("compress", CODECS),
            property_columns=_property_columns(given),
            app_id=app_id,
            version=version or 0,
            lock_timeout_s=given.seconds("lockTimeout", 30),
        )


def _property_columns(given: Given) -> tuple[str, ...]:
    text = given.text("propertyColumns") or ""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name in COLUMNS:
            raise OptionError("propertyColumns", f"'{name}' is written as what it is; leave it out")
        if name in RESERVED_PROPERTIES:
            raise OptionError("propertyColumns", f"'{name}' is a property that the store writes")
    return names


def _version(given: Given) -> int | None:
    text = given.text("txnVersion")
    if text is not None and not (text.isascii() and text.isdigit()):
        raise OptionError("txnVersion", f"is '{text}'; give a whole number of at least 0")
    return int(text) if text is not None else None
