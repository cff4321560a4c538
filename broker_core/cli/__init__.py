"""The command line: `rocketpy`. Commands import what they need when they run: help is fast."""

from rocketpy.broker_core.cli.app import app, main

__all__ = ["app", "main"]
