"""Which reader a place gets: that of folders, or that of clusters."""

from __future__ import annotations

from pathlib import Path

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.console.changes.cluster import ClusterChanger
from rocketpy.console.changes.folder import FolderChanger
from rocketpy.console.cluster import ClusterReader
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace

_TIMEOUT_S = 3.0  # for one server: somebody waits for the page


def opened(
    at: Path | ClusterAddress,
    *,
    credentials: str | None = None,
    tls: str | None = None,
    trails: Path | None = None,
) -> WatchedPlace:
    """Return a place that nobody watches yet; `credentials` and `tls` are paths of files.

    `trails` is a folder for what became of dead letters of clusters; stores have it themselves.

    Raises:
        StoreNotFoundError, UnsupportedStoreError, CorruptStoreError: it is no store to be read.
        CredentialsError, TlsError: what a file or the environment says cannot be used.
    """
    if isinstance(at, Path):
        return WatchedPlace(FolderReader(at), FolderChanger(at))
    access = ClusterAccess.of_places(at, _TIMEOUT_S, credentials=credentials, tls=tls)
    return WatchedPlace(ClusterReader(access), ClusterChanger(access, trails))
