"""Where messages are, as the first argument of many commands says it: a folder, or a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocketpy.broker_core.client.address import ClusterAddress, is_cluster_address
from rocketpy.broker_core.client.errors import FolderOnlyError
from rocketpy.broker_core.store_path import store_path

At = Path | ClusterAddress


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a store, or the name servers of a cluster."""

    at: At

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read what was typed.

        Raises:
            ClusterAddressError, StorePathError: it is neither.
        """
        return cls(ClusterAddress.parse(text) if is_cluster_address(text) else store_path(text))

    def __str__(self) -> str:
        return str(self.at)


def folder(text: str) -> Path:
    """Read the folder of a store, for commands that need its files.

    Raises:
        FolderOnlyError: it is a cluster.
        StorePathError: it is a URI of something else.
    """
    return folder_for("this command", "run it where a broker keeps its store")(text)


def folder_for(what: str, instead: str) -> Callable[[str], Path]:
    """Return what reads a folder as folder() does, and tells a cluster what to do instead."""

    def read(text: str) -> Path:
        if is_cluster_address(text):
            raise FolderOnlyError(what, instead)
        return store_path(text)

    return read
