"""The door to the file system."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import DiskFullError
from rocketpy.broker_core.storage import disk as disk_module
from rocketpy.broker_core.storage.disk import Disk, DiskFile, raise_if_full, remove_unfinished
from rocketpy.broker_core.storage.file_system import in_place_block


def test_a_new_file_is_sparse_and_zero(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 1 << 20)
    assert file.size == 1 << 20
    assert (tmp_path / "f").stat().st_blocks == 0
    assert not file.view.any()


def test_a_new_file_has_the_blocks_that_were_asked_for(tmp_path: Path) -> None:
    Disk().create(tmp_path / "f", 1 << 20, allocated=1 << 19)
    assert (tmp_path / "f").stat().st_blocks * 512 >= 1 << 19


def test_what_is_written_is_read_and_seen_through_the_mapping(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 100)
    view = file.view
    file.write(b"hello", 10)
    assert file.read(10, 5) == b"hello"
    assert view[10:15].tobytes() == b"hello"
    assert (tmp_path / "f").read_bytes()[10:15] == b"hello"


def test_a_mapping_outlives_the_file(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 100)
    file.write(b"hello", 0)
    view = file.view
    Disk().remove(tmp_path / "f")
    del file
    assert view[:5].tobytes() == b"hello"


def test_an_empty_file_has_an_empty_view(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert Disk().open(tmp_path / "f", writable=False).view.size == 0


def test_a_descriptor_is_closed_with_its_file(tmp_path: Path) -> None:
    for _ in range(10):
        Disk().create(tmp_path / "f", 100)
    last = Disk().open(tmp_path / "f", writable=False)
    number = last._fd
    del last
    assert Disk().open(tmp_path / "f", writable=False)._fd == number


def test_a_few_bytes_are_poked(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 100, allocated=100)
    file.poke(b"\xff", 99)
    assert file.read(98, 2) == b"\0\xff"


def test_zeroing_leaves_what_is_outside(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 1 << 20)
    file.write(b"x" * 1000, 500)
    file.zero(600, 1 << 20)
    assert file.read(500, 101) == b"x" * 100 + b"\0"
    assert not file.view[600:].any()


def test_zeroing_makes_no_blocks(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 1 << 26)
    file.write(b"x", 0)
    file.zero(0, 1 << 26)
    assert (tmp_path / "f").stat().st_blocks * 512 <= 1 << 16


def test_data_is_told_from_holes(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "f", 1 << 20)
    assert list(file.data_ranges(0, 1 << 20)) == []
    file.write(b"x", 600_000)
    ((first, last),) = file.data_ranges(0, 1 << 20)
    assert first <= 600_000 < last
    assert list(file.data_ranges(600_000, 600_001)) == [(600_000, 600_001)]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    Disk().replace(tmp_path / "f", b"old")
    Disk().replace(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_replace_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk().replace(tmp_path / "f", b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFullError, match="no room for 3 bytes"):
        Disk().replace(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_threads_that_replace_one_file_do_not_mix(tmp_path: Path) -> None:
    texts = [bytes([letter]) * 10_000 for letter in b"abcd"]

    def replace_often(text: bytes) -> None:
        for _ in range(5):
            Disk().replace(tmp_path / "f", text)

    threads = [threading.Thread(target=replace_often, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() in texts


def test_what_died_unfinished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".f.123-4.new").touch()
    (tmp_path / "a" / "f").touch()
    remove_unfinished(tmp_path)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["f"]


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    Disk().remove(tmp_path / "f")


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    Disk().make_folder(tmp_path / "a" / "b" / "c")
    Disk().make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "c").is_dir()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_as_such(code: int, tmp_path: Path) -> None:
    with pytest.raises(DiskFullError, match="free some space and call again") as caught:
        raise_if_full(OSError(code, "full"), tmp_path, 77)
    assert caught.value.needed_bytes == 77


def test_another_error_is_not_a_full_disk(tmp_path: Path) -> None:
    raise_if_full(OSError(errno.EIO, "broken"), tmp_path, 77)


def test_a_write_that_the_system_cuts_short_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Disk().create(tmp_path / "f", 100)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, bytes(data)[:3], at))
    file.write(b"0123456789", 5)
    assert file.read(5, 10) == b"0123456789"


def test_a_write_to_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Disk().create(tmp_path / "f", 100)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DiskFullError, match=r"no room for 2 bytes in .*nothing of this call"):
        file.write(b"xy", 0)


def test_a_file_that_does_not_fit_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskFullError, match="no room for 4096 bytes"):
        Disk().create(tmp_path / "f", 8192, allocated=4096)
    assert list(tmp_path.iterdir()) == []


def test_what_is_staged_has_a_name_of_its_own_and_goes_with_what_is_unfinished(
    tmp_path: Path,
) -> None:
    disk, path = Disk(), tmp_path / "billing.json"
    disk.replace(path, b"old")
    staged = [disk.stage(path, b"new", token) for token in ("one", "two")]
    disk.sync_many(staged)
    assert [each.read_bytes() for each in staged] == [b"new", b"new"]
    staged[0].replace(path)
    assert path.read_bytes() == b"new"
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_synced_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Disk().sync_many([tmp_path / "nowhere"])


def test_a_few_bytes_are_written_by_a_call_where_a_file_system_copies_on_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def in_place_block(fd: int) -> int:
        asked.append(fd)
        return 0

    monkeypatch.setattr(disk_module, "in_place_block", in_place_block)
    monkeypatch.setattr(mmap, "mmap", None)  # to map would fail
    file = Disk().create(tmp_path / "file", 8192)
    file.poke(b"abc", 100)
    assert file.read(99, 5) == b"\0abc\0"
    file.write_on(b"def", 103)
    assert file.read_on(99, 8) == b"\0abcdef\0"
    assert not file.can_scatter(8192)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("at", "size", "is_called"),
    [
        (1, 4095, False),
        (4000, 96, False),
        (4000, 97, True),  # a part of it goes to a page that may be a hole
        (0, 10, True),  # there is no byte before
        (4096, 10, True),
    ],
)
def test_what_goes_on_in_a_page_is_written_without_a_call(
    at: int, size: int, is_called: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    write = DiskFile.write

    def called(self: DiskFile, data: bytes, at: int) -> None:
        calls.append(at)
        write(self, data, at)

    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = Disk().create(Path(folder) / "file", 16384)
        file.write(b"x", max(at - 1, 0))
        monkeypatch.setattr(DiskFile, "write", called)
        file.write_on(b"y" * size, at)
        assert bool(calls) == is_called
        assert file.read(at, size) == file.read_on(at, size) == b"y" * size
        assert not any(file.read(at + size, 16384))


def test_a_page_of_several_blocks_is_written_by_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_module, "in_place_block", lambda _: 1024)
    monkeypatch.setattr(mmap, "mmap", None)  # to map would fail
    file = Disk().create(tmp_path / "file", 8192)
    file.write(b"x", 0)
    file.write_on(b"y", 1)
    assert file.read_on(0, 3) == b"xy\0"


def test_the_machine_s_file_system_in_memory_writes_in_place() -> None:
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        assert in_place_block(file.fileno()) == mmap.PAGESIZE
    with Path("/proc/self/status").open() as other:
        assert in_place_block(other.fileno()) == 0
