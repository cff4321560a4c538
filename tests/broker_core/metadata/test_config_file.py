from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata.config_file import ConfigFile, Replaces
from rocketpy.broker_core.metadata.dialect import dumps
from rocketpy.broker_core.metadata.documents import Document, with_members

OLD: Document = {"version": 1}
NEW: Document = {"version": 2}


class DyingDisk:
    """Does `replaces` whole replacements, then is gone."""

    def __init__(self, disk: Replaces, replaces: int) -> None:
        self._disk = disk
        self._left = replaces

    def replace(self, path: Path, data: bytes) -> None:
        if self._left == 0:
            raise OSError("the power went")
        self._left -= 1
        self._disk.replace(path, data)


@pytest.fixture
def file(config_file: Callable[[str], ConfigFile]) -> ConfigFile:
    return config_file("topics.json")


def age(path: Path, seconds: int = 10) -> None:
    """Make the file look as if it had been written long ago."""
    status = path.stat()
    past = status.st_mtime_ns - seconds * 10**9
    os.utime(path, ns=(past, past))


def test_missing_file_is_an_empty_document(file: ConfigFile) -> None:
    assert file.load() == {}


def test_saved_document_is_loaded_again(file: ConfigFile, disk: Replaces) -> None:
    file.save(NEW)
    assert ConfigFile(file.path, disk).load() == NEW


def test_save_keeps_the_previous_bytes_as_bak(file: ConfigFile) -> None:
    file.path.write_bytes(b'{ "written": "by hand" }')
    file.save(NEW)
    assert file.path.read_bytes() == dumps(NEW)
    assert file.backup_path.read_bytes() == b'{ "written": "by hand" }'


def test_first_save_makes_no_bak(file: ConfigFile) -> None:
    file.save(NEW)
    assert not file.backup_path.exists()


@pytest.mark.parametrize("main", [None, b"", b'{"version":', b"[]", b'{"version":\xff}'])
def test_missing_empty_or_torn_file_falls_back_to_bak_and_says_so(
    main: bytes | None, file: ConfigFile, caplog: pytest.LogCaptureFixture
) -> None:
    if main is not None:
        file.path.write_bytes(main)
    file.backup_path.write_bytes(dumps(OLD))
    with caplog.at_level(logging.WARNING):
        assert file.load() == OLD
    assert str(file.path) in caplog.text
    assert "took topics.json.bak" in caplog.text


def test_fall_back_is_told_once_while_nothing_changes(
    file: ConfigFile, caplog: pytest.LogCaptureFixture
) -> None:
    file.path.write_bytes(b"{")
    file.backup_path.write_bytes(dumps(OLD))
    age(file.path)
    age(file.backup_path)
    for _ in range(3):
        file.load()
    assert len(caplog.records) == 1


def test_fall_back_ends_when_the_main_file_is_whole_again(file: ConfigFile) -> None:
    file.backup_path.write_bytes(dumps(OLD))
    age(file.backup_path)
    assert file.load() == OLD
    file.path.write_bytes(dumps(NEW))
    assert file.load() == NEW


def test_torn_file_without_bak_is_an_error_not_an_empty_store(file: ConfigFile) -> None:
    file.path.write_bytes(b'{"version":')
    with pytest.raises(MetadataError, match=r"topics\.json cannot be read: .* line 1, column 12"):
        file.load()


def test_torn_file_with_torn_bak_is_an_error(file: ConfigFile) -> None:
    file.path.write_bytes(b'{"version":')
    file.backup_path.write_bytes(b"{")
    with pytest.raises(MetadataError, match=r"topics\.json cannot be read"):
        file.load()


def test_torn_bak_of_a_missing_file_is_an_error(file: ConfigFile) -> None:
    file.backup_path.write_bytes(b"{")
    with pytest.raises(MetadataError, match=r"topics\.json\.bak cannot be read"):
        file.load()


def test_empty_file_without_bak_is_new(file: ConfigFile, caplog: pytest.LogCaptureFixture) -> None:
    file.path.touch()
    assert file.load() == {}
    assert "is empty and has no .bak" in caplog.text


def test_file_that_may_not_be_read_is_an_error_not_a_fall_back(file: ConfigFile) -> None:
    file.path.mkdir()
    file.backup_path.write_bytes(dumps(OLD))
    with pytest.raises(MetadataError, match="directory"):
        file.load()


@pytest.mark.parametrize("replaces", [0, 1])
def test_crash_inside_a_save_leaves_the_old_version_whole(
    replaces: int, file: ConfigFile, disk: Replaces
) -> None:
    file.save({"version": 0})
    file.save(OLD)
    with pytest.raises(OSError, match="power"):
        ConfigFile(file.path, DyingDisk(disk, replaces)).save(NEW)
    assert ConfigFile(file.path, disk).load() == OLD


def test_crash_inside_a_save_over_a_torn_file_leaves_the_bak_whole(
    file: ConfigFile, disk: Replaces
) -> None:
    file.path.write_bytes(b'{"version":')
    file.backup_path.write_bytes(dumps(OLD))
    with pytest.raises(OSError, match="power"):
        ConfigFile(file.path, DyingDisk(disk, 0)).save(NEW)
    assert ConfigFile(file.path, disk).load() == OLD
    ConfigFile(file.path, DyingDisk(disk, 1)).save(NEW)
    assert file.backup_path.read_bytes() == dumps(OLD)


def test_unchanged_file_is_read_once(file: ConfigFile) -> None:
    file.save(NEW)
    age(file.path)
    assert file.load() is file.load()


@pytest.mark.parametrize(("age_ms", "is_cached"), [(0, False), (90, False), (110, True)])
def test_file_written_a_moment_ago_is_read_again(
    age_ms: int, is_cached: bool, file: ConfigFile, disk: Replaces
) -> None:
    file.save(NEW)
    now_ns = file.path.stat().st_mtime_ns + age_ms * 10**6
    reader = ConfigFile(file.path, disk, now_ns=lambda: now_ns)
    assert (reader.load() is reader.load()) == is_cached


def test_change_by_another_is_seen(file: ConfigFile, disk: Replaces) -> None:
    file.save(OLD)
    age(file.path)
    assert file.load() == OLD
    ConfigFile(file.path, disk).save(NEW)
    assert file.load() == NEW


def test_change_starts_from_the_newest_content_even_if_its_signature_is_known(
    file: ConfigFile,
) -> None:
    file.save({"who": "me", "n": 1})
    age(file.path)
    file.load()
    before = file.path.stat()
    file.path.write_bytes(dumps({"who": "it", "n": 1}))  # in place, same size ...
    os.utime(file.path, ns=(before.st_mtime_ns, before.st_mtime_ns))  # ... and same time
    file.change(lambda document: with_members(document, {"n": 2}))
    assert file.load() == {"who": "it", "n": 2}


def test_change_that_changes_nothing_writes_nothing(file: ConfigFile, disk: Replaces) -> None:
    file.save(OLD)
    ConfigFile(file.path, DyingDisk(disk, 0)).change(lambda document: document)
    assert not file.backup_path.exists()
