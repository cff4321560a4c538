"""OpenTelemetry, which whoever wants spans has to install."""

from __future__ import annotations

from rocketpy.broker_core.errors import RocketPyError


class TelemetryMissingError(RocketPyError):
    """Is raised when spans are wanted, and OpenTelemetry is not installed."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self.module = module

    def __str__(self) -> str:
        return f"telemetry needs {self.module}: pip install 'rocketpy-spark[otel]'"
