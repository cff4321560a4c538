"""Rows of Spark's tasks on their way into the store: staged over the wire, committed together.

P1  Nothing that is staged can be read before a commit names it. A commit stores all that it names,
    durably, or nothing; a batch of a writer is stored once (storage/batches).
P2  A request that comes again, as its answer was lost, adds nothing.
P3  What a client sends is rows, not records: they pass the same checks as those of a folder's sink.
P4  One commit of a writer runs at a time; who asks meanwhile is told that the broker is busy.
P5  Uploads that are left lying are dropped: those in memory with the process or after a time, their
    files after a day. After a restart an upload cannot go on; its task is run again.
Used by the threads of the pool.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.staged import TaskStage
from rocketpy.broker_core.net.service import RefusedError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.staging import StageRows
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.ledger import read_ledger
from rocketpy.broker_core.storage.batches.staging import remove_staged
from rocketpy.broker_core.storage.layout import STAGED
from rocketpy.broker_core.storage.store import MessageStore

MOST_UPLOADS = 1000
_IDLE_S = 3600.0
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


@dataclass(slots=True)
class _Upload:
    """What one task has staged so far."""

    stage: TaskStage
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: int = 0  # requests
    file: str | None = None
    is_finished: bool = False
    touched_s: float = field(default_factory=time.monotonic)


class StagedUploads:
    """The uploads of one broker."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._lock = threading.Lock()  # of the table; held for moments only
        self._uploads: dict[tuple[str, str], _Upload] = {}
        self._committing: dict[str, set[str]] = {}  # transactions, by the writer

    def add(self, request: StageRows, body: bytes | memoryview) -> str | None:
        """Stage rows; return the file, if these are the last ones of their part.

        Raises:
            RefusedError: a row cannot be stored, or requests before this one are missing.
        """
        upload = self._upload(request)
        with upload.lock:
            upload.touched_s = time.monotonic()
            if request.number < upload.done:
                return upload.file  # it comes again
            if request.number > upload.done or upload.is_finished:
                remark = f"{upload.done} requests of this upload are known; run the task again"
                raise RefusedError(ResponseCode.ILLEGAL_OPERATION, remark)
            try:
                for batch in _batches(body):
                    upload.stage.add(batch)
                if request.is_last:
                    path, _ = upload.stage.finish()
                    upload.file = None if path is None else f"{request.transaction}/{path.name}"
                    upload.is_finished = True
            except MessageRefusedError as error:
                self._drop([(request.transaction, request.part)])
                raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
            upload.done += 1
            return upload.file

    def commit(
        self,
        files: Sequence[str],
        *,
        writer: str,
        number: int,
        former: str | None,
        brokers: str | None,
    ) -> bool:
        """Store what was staged in files, whole, durably and once; return whether it was new.

        Raises:
            RefusedError: a name is none that was given, or this writer commits already.
            StaleBatchError: a later batch of the writer is in the store.
            CorruptStoreError: a file is damaged or gone; nothing was stored.
        """
        pairs = [_checked_file(file) for file in files]
        root = self._store.root
        batch = StagedBatch(
            files=[root / STAGED / transaction / name for transaction, name in pairs],
            writer=writer,
            number=number,
            formerly=former,
            note={"brokers": brokers or ""},
        )
        transactions = {transaction for transaction, _ in pairs}
        with self._lock:
            if writer in self._committing:
                remark = f"a commit of {writer!r:.150} is under way"
                raise RefusedError(ResponseCode.SYSTEM_BUSY, remark)
            self._committing[writer] = transactions
        try:
            # Of a batch that is stored the files are gone, and it may be asked for again.
            is_known = read_ledger(root).is_replay(writer, number, former)
            is_new = bool(pairs) and not is_known and self._store.commit_batch(batch)
        finally:
            with self._lock:
                del self._committing[writer]
        self.drop(transactions)
        return is_new

    def drop(self, transactions: set[str]) -> None:
        """Remove what was staged in some transactions, unless it is just being committed."""
        for transaction in transactions:
            _check_name(transaction)
        with self._lock:
            transactions = transactions.difference(*self._committing.values())
            keys = [key for key in self._uploads if key[0] in transactions]
        self._drop(keys)
        remove_staged(self._store.root, transactions)

    def _upload(self, request: StageRows) -> _Upload:
        _check_name(request.transaction)
        _check_name(request.part)
        key = request.transaction, request.part
        self._drop_idle()
        with self._lock:
            known = self._uploads.get(key)
            if known is None:
                if len(self._uploads) >= MOST_UPLOADS:
                    remark = f"{MOST_UPLOADS} uploads are open: too many"
                    raise RefusedError(ResponseCode.SYSTEM_BUSY, remark)
                named = request.property_columns
                stage = TaskStage(
                    root=self._store.root,
                    transaction=request.transaction,
                    topic=request.topic,
                    property_columns=tuple(named.split(",")) if named else (),
                    name=request.rows_name,
                    config=self._store.config,
                )
                known = self._uploads[key] = _Upload(stage)
        return known

    def _drop_idle(self) -> None:
        now_s = time.monotonic()
        with self._lock:
            idle = [key for key, each in self._uploads.items() if now_s - each.touched_s > _IDLE_S]
        self._drop(idle)

    def _drop(self, keys: Sequence[tuple[str, str]]) -> None:
        with self._lock:
            dropped = [self._uploads.pop(key, None) for key in keys]
        for upload in dropped:
            if upload is not None and not upload.is_finished:
                upload.stage.discard()


def _batches(body: bytes | memoryview) -> list[pa.RecordBatch]:
    try:
        if not len(body):
            return []
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            found = list(reader)
        for batch in found:
            batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as cause:
        remark = f"the body is no stream of Arrow's: {cause!s:.200}"
        raise RefusedError(ResponseCode.INVALID_PARAMETER, remark) from cause
    for batch in found:
        if "body" not in batch.schema.names:
            raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "the rows have no column 'body'")
    return found


def _checked_file(file: str) -> tuple[str, str]:
    transaction, _, name = file.partition("/")
    _check_name(transaction)
    _check_name(name)
    return transaction, name


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RefusedError(ResponseCode.INVALID_PARAMETER, f"{name!r:.120} is no name of an upload")
