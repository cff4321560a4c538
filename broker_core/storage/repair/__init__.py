"""Repair of a store: the log mended, queues and index rebuilt from it; see runs.py."""

from rocketpy.broker_core.storage.repair.runs import (
    RepairReport,
    RepairTargetError,
    repair_in_place,
    repair_to,
)

__all__ = ["RepairReport", "RepairTargetError", "repair_in_place", "repair_to"]
