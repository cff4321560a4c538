from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.identity import (
    OtherStoreError,
    StoreIdentity,
    identity_of,
    make_identity,
    note_identity,
    require_same,
)
from rocketpy.broker_core.storage.layout import IDENTITY

# A copy of the usual files, which are sparse, would be of more than a gigabyte.
SMALL = StoreConfig(commit_log_file_size=1 << 16, index_slots=100, index_entries=400)


def make(path: Path, *bodies: str, with_id: bool = True) -> Path:
    with rocketpy.open(path, config=SMALL) as store:
        store.create_topic("t")
        for body in bodies:
            store.send("t", body)
    if not with_id:
        (path / IDENTITY).unlink()
    return path


def test_a_store_has_an_id_from_its_first_opening_on(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one"), make(tmp_path / "other")
    ids = {identity_of(one).id, identity_of(other).id}
    assert len(ids - {None}) == 2
    before = identity_of(one).id
    make(one, "more")
    assert identity_of(one).id == before


def test_the_same_store_is_known_again_however_it_grows(tmp_path: Path) -> None:
    seen = pickle.loads(pickle.dumps(identity_of(make(tmp_path / "s"))))
    require_same(make(tmp_path / "s", "more"), seen)


@pytest.mark.parametrize("with_id", [True, False])
def test_another_store_is_refused_with_both_told(tmp_path: Path, with_id: bool) -> None:
    seen = identity_of(make(tmp_path / "one", "a", with_id=with_id))
    other = make(tmp_path / "other", "b", with_id=with_id)
    with pytest.raises(OtherStoreError, match="must share the folder"):
        require_same(other, seen)
    with pytest.raises(OtherStoreError, match="no store, or an empty one"):
        require_same(tmp_path / "nothing", seen)


def test_a_store_without_an_id_is_known_by_its_first_record(tmp_path: Path) -> None:
    root = make(tmp_path / "s", "a", "b", with_id=False)
    seen = identity_of(root)
    assert (seen.id, seen.first_at) == (None, 0)
    require_same(make(root, "c"), seen)  # it has got an id meanwhile
    with pytest.raises(OtherStoreError):
        require_same(make(tmp_path / "other", "b", "a"), seen)


def test_a_log_that_retention_has_shortened_is_still_the_same() -> None:
    seen = StoreIdentity(None, 0, 1)
    assert seen.is_same(StoreIdentity(None, 4096, 2))
    assert not StoreIdentity(None, 4096, 2).is_same(seen)
    assert StoreIdentity(None).is_same(seen)


def test_an_id_is_made_for_a_folder_that_is_to_become_a_store(tmp_path: Path) -> None:
    made = make_identity(tmp_path / "s", 1.0)
    assert made.id is not None
    assert make_identity(tmp_path / "s", 1.0) == made
    require_same(make(tmp_path / "s", "a"), made)


def test_a_damaged_id_is_made_anew_by_the_next_writer(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    before = identity_of(root).id
    assert before is not None
    for damage in (b"", b"[]", b'{"id": 1, "crc": 1}', b'{"crc": 0, "id": "x"}', b"\xff"):
        (root / IDENTITY).write_bytes(damage)
        assert identity_of(root).id is None
    note_identity(root, Disk())
    assert identity_of(root).id not in (None, before)


def test_a_copy_has_the_id_of_its_original(tmp_path: Path) -> None:
    """So a copy on each machine passes here; what its tasks stage is then found missing."""
    root = make(tmp_path / "s", "a")
    shutil.copytree(root, tmp_path / "copy")
    require_same(tmp_path / "copy", identity_of(root))
