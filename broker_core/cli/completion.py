"""What the shell offers when Tab is pressed: stores, and the topics and groups of the one named.

It reads a few small files, and offers nothing if it cannot read them: a Tab never fails, waits for
a lock, or changes a store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import typer

_MOST_FOLDERS = 500  # that are looked into for stores
_DEPTH = 2


def complete_store(incomplete: str) -> list[str]:
    """Return store folders that begin so; with none the shell offers files and folders itself."""
    parent, start = os.path.split(incomplete)
    level = [_joined(parent, name) for name in _folders(parent) if name.startswith(start)]
    found: list[str] = []
    for _ in range(_DEPTH):
        deeper: list[str] = []
        for path in level[:_MOST_FOLDERS]:
            names = _folders(path)
            if "commitlog" in names:
                found.append(path)
            else:
                deeper += [_joined(path, name) for name in names]
        level = deeper
    return sorted(found)


def complete_topic(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the topics of the store on the command line; RocketMQ's own once one is begun."""
    from rocketpy.broker_core.metadata.names import is_system_topic

    found = _of_store(ctx, incomplete, _topics)
    return [name for name in found if incomplete or not is_system_topic(name)]


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the consumer groups of the store on the command line."""
    return _of_store(ctx, incomplete, _groups)


def _of_store(ctx: typer.Context, incomplete: str, names: Callable[[Path], set[str]]) -> list[str]:
    # While an option lacks its value, words are not yet assigned: the store is the first.
    words = [word for word in ctx.args if not word.startswith("-")]
    path = ctx.params.get("path") or (words[0] if words else None)
    if path is None:
        return []
    try:
        return sorted(name for name in names(Path(str(path))) if name.startswith(incomplete))
    except Exception:  # a Tab shows no error: the command itself will
        return []


def _topics(root: Path) -> set[str]:
    from rocketpy.broker_core.metadata import ConfigFile, TopicTable
    from rocketpy.broker_core.storage.disk import Disk
    from rocketpy.broker_core.storage.layout import CONFIG

    return set(TopicTable(ConfigFile(root / CONFIG / TopicTable.FILE_NAME, Disk())).all())


def _groups(root: Path) -> set[str]:
    from rocketpy.broker_core.metadata import ConfigFile, GroupTable, OffsetTable
    from rocketpy.broker_core.storage.disk import Disk
    from rocketpy.broker_core.storage.layout import CONFIG

    config, disk = root / CONFIG, Disk()
    made = GroupTable(ConfigFile(config / GroupTable.FILE_NAME, disk)).all()
    committed = OffsetTable(ConfigFile(config / OffsetTable.FILE_NAME, disk)).all()
    return {*made, *(offset.group for offset in committed)}


def _joined(parent: str, name: str) -> str:
    """Return a path that begins as it was typed: ./data stays ./data."""
    return f"{parent}{'' if parent in ('', '/') else '/'}{name}"


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path or os.curdir) as entries:
            return [each.name for each in entries if each.is_dir() and each.name[0] != "."]
    except OSError:
        return []
