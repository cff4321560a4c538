"""What an existing store tells of itself: file sizes, and whether we can read it whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MetadataError, UnsupportedStoreError
from rocketpy.broker_core.metadata.dialect import loads
from rocketpy.broker_core.storage.checked_json import SORTED, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index import index_geometry
from rocketpy.broker_core.storage.layout import (
    COMMIT_LOG,
    CONFIG,
    CONSUME_QUEUE,
    CONSUME_QUEUE_EXT,
    INDEX,
    INDEX_ENTRY,
    INDEX_HEADER_SIZE,
    INDEX_SLOT,
    QUEUE_UNIT_SIZE,
    SIZES,
)
from rocketpy.broker_core.store_path import store_path

_SIZES = (
    "commit_log_file_size",
    "consume_queue_file_entries",
    "consume_queue_ext",
    "consume_queue_ext_file_size",
    "index_slots",
    "index_entries",
)
_FILE = CheckedJson(key="sizes", form=SORTED)


def is_store(root: Path) -> bool:
    """Whether a folder looks like a store.

    Raises:
        StorePathError: it is not a folder, but a URI that was taken for a path.
    """
    return (store_path(root) / COMMIT_LOG).is_dir()


def adapt(root: Path, config: StoreConfig) -> StoreConfig:
    """Return the configuration with the file sizes that a store already has.

    Raises:
        UnsupportedStoreError: the sizes of its index files do not tell their layout.
    """
    config = replace(config, **_noted_sizes(root))  # type: ignore[arg-type]
    found: dict[str, int | bool] = {}
    log_size = _spacing(_files(root / COMMIT_LOG)) or _common_size(_files(root / COMMIT_LOG))
    if log_size >= 1 << 31:
        reason = f"its commit-log files have {log_size} bytes, RocketMQ's are under 2 GiB"
        raise UnsupportedStoreError(root, [reason])
    if log_size:
        found["commit_log_file_size"] = log_size
    queue_size = _common_size(_nested_files(root / CONSUME_QUEUE))
    if queue_size >= QUEUE_UNIT_SIZE:
        found["consume_queue_file_entries"] = queue_size // QUEUE_UNIT_SIZE
    ext_size = _common_size(_nested_files(root / CONSUME_QUEUE_EXT))
    if ext_size:
        found["consume_queue_ext_file_size"] = ext_size
        found["consume_queue_ext"] = True
    index_size = _common_size(_files(root / INDEX))
    if index_size:
        found["index_slots"], found["index_entries"] = _index_layout(root, config, index_size)
    return replace(config, **found)  # type: ignore[arg-type]


def note_sizes(root: Path, config: StoreConfig, disk: Disk) -> None:
    """Note the sizes of a store that has no note yet. Call while holding the store's lock.

    Without a note two processes that make a store together might give it files of two sizes.
    """
    if not (root / SIZES).exists():
        _FILE.write(root / SIZES, {name: getattr(config, name) for name in _SIZES}, disk)


def _noted_sizes(root: Path) -> dict[str, int | bool]:
    """Return the noted sizes; none if there is no note or it is damaged: files tell most."""
    sizes: dict[str, int | bool] = _FILE.read_if_sound(root / SIZES, dict) or {}
    return sizes if set(sizes) == set(_SIZES) else {}


def _index_layout(root: Path, config: StoreConfig, size: int) -> tuple[int, int]:
    configured = (
        INDEX_HEADER_SIZE
        + config.index_slots * INDEX_SLOT.itemsize
        + config.index_entries * INDEX_ENTRY.itemsize
    )
    if size == configured:
        return config.index_slots, config.index_entries
    geometry = index_geometry(size)
    if geometry is None:
        reason = (
            f"an index file of {size} bytes does not tell its layout: give the broker's "
            "maxHashSlotNum and maxIndexNum as StoreConfig(index_slots=…, index_entries=…)"
        )
        raise UnsupportedStoreError(root, [reason])
    return geometry


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if path.name.isdigit())


def _nested_files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for topic in sorted(folder.iterdir()):
            for queue in _files(topic):
                yield from _files(queue)


def _spacing(paths: Iterator[Path]) -> int:
    """Return how far apart files begin, by their names: true whatever was appended to them."""
    starts = [int(path.name) for path, _ in zip(paths, range(5), strict=False)]
    return min((after - before for before, after in pairwise(starts)), default=0)


def _common_size(paths: Iterator[Path]) -> int:
    """Return the size of most of the first few files: one may be cut short."""
    sizes = [path.stat().st_size for path, _ in zip(paths, range(5), strict=False)]
    return max(sizes, key=lambda size: (sizes.count(size), size), default=0)


def refuse_unsupported(root: Path) -> None:
    """Refuse a store of which we would see only a part.

    Raises:
        UnsupportedStoreError: names each kind of data that we cannot read.
    """
    reasons = [*_foreign_folders(root), *_foreign_topics(root)]
    if reasons:
        raise UnsupportedStoreError(root, reasons)


def _foreign_folders(root: Path) -> Iterator[str]:
    for name in ("rocksdbstore", "consumequeue_r"):
        folder = root / name
        tables = [
            *folder.glob("*.sst"),
            *(log for log in folder.glob("*.log") if log.stat().st_size),
        ]
        if folder.is_dir() and tables:
            yield (
                f"its consume queues are in RocksDB ({name}/); "
                "set storeType=default in the broker and let it rebuild them"
            )
    if (root / CONFIG / "tieredStoreMetadata.json").exists() or (root / "tieredStore").is_dir():
        yield "a part of its messages is in tiered storage; read them through the broker"
    if any(path.name.startswith("dledger") for path in root.glob("dledger*")):
        yield "its commit log is DLedger's (dledger*/), which has another record format"
    if (root / "batchconsumequeue").is_dir():
        yield "it has batch consume queues (batchconsumequeue/)"


def _foreign_topics(root: Path) -> Iterator[str]:
    path = root / CONFIG / "topics.json"
    try:
        document = loads(path.read_bytes(), path=str(path))
    except (FileNotFoundError, NotADirectoryError, MetadataError):
        return  # whoever needs it reads it again, and gets the error
    table = document.get("topicConfigTable", {}) if isinstance(document, dict) else {}
    for name, topic in table.items():
        attributes = str(topic.get("attributes", "")) if isinstance(topic, dict) else ""
        if "COMPACTION" in attributes:
            yield f"topic {name} is a compaction topic; only its broker knows what is still valid"
        if "BatchCQ" in attributes:
            yield f"topic {name} has batch consume queues"
