"""Files of one size, named by the offset of their first byte."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.file_sequence import FileSequence, file_starts

SIZE = 100


def sequence(folder: Path, *, keep_open: int = 2) -> FileSequence:
    return FileSequence(folder, SIZE, Disk(), writable=True, keep_open=keep_open)


def test_a_write_over_the_end_of_a_file_goes_on_in_the_next(tmp_path: Path) -> None:
    files = sequence(tmp_path)
    files.write(90, bytes(range(1, 131)))
    assert files.starts() == [0, 100, 200]
    assert files.read(90, 10) == bytes(range(1, 11))
    assert files.read(100, 100) == bytes(range(11, 111))
    assert files.read(200, 21) == bytes(range(111, 131)) + b"\0"


def test_file_names_have_twenty_digits(tmp_path: Path) -> None:
    sequence(tmp_path).write(1234, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["00000000000000001200"]


def test_other_names_are_no_files_of_the_sequence(tmp_path: Path) -> None:
    for name in ("0" * 19, "x" * 20, ".00000000000000000000.1-1.new", "lost+found", "0" * 20):
        (tmp_path / name).touch()
    assert file_starts(tmp_path) == [0]


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert file_starts(tmp_path / "none") == []
    assert sequence(tmp_path / "none").read(0, 10) == b""


def test_what_another_sequence_adds_is_seen(tmp_path: Path) -> None:
    reader, writer = sequence(tmp_path), sequence(tmp_path)
    assert reader.read(100, 1) == b""
    writer.write(100, b"x")
    assert reader.read(100, 1) == b"x"


def test_only_a_few_files_stay_open(tmp_path: Path) -> None:
    files = sequence(tmp_path, keep_open=2)
    for start in range(0, 600, 100):
        files.write(start, bytes([start // 100 + 1]))
    assert [files.read(start, 1) for start in range(0, 600, 100)] == [
        bytes([number]) for number in range(1, 7)
    ]


def test_zeroing_reaches_through_all_files(tmp_path: Path) -> None:
    files = sequence(tmp_path)
    files.write(0, b"x" * 350)
    assert files.has_data_from(349)
    assert not files.has_data_from(350)
    files.zero_from(150)
    assert files.starts() == [0, 100, 200, 300]
    assert files.read(100, 100) == b"x" * 50 + bytes(50)
    assert not files.has_data_from(150)
    assert files.has_data_from(149)


def test_a_removed_file_is_gone(tmp_path: Path) -> None:
    files = sequence(tmp_path)
    files.write(0, b"x" * 200)
    files.remove(0)
    assert files.starts() == [100]
    assert files.file(0) is None


def test_a_file_that_another_thread_lets_go_meanwhile_is_still_returned(tmp_path: Path) -> None:
    class LetsGo(OrderedDict[int, DiskFile]):
        """As if another thread evicted the file right after this one found it."""

        def get(self, key: int, default: DiskFile | None = None) -> DiskFile | None:  # type: ignore[override]
            found = super().get(key, default)
            self.pop(key, None)
            return found

    files = sequence(tmp_path)
    files.write(0, b"x")
    files._open = LetsGo(files._open)
    assert files.read(0, 1) == b"x"
