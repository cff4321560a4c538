from __future__ import annotations

from importlib.metadata import version

import rocketpy


def test_the_module_and_the_distribution_have_the_same_version() -> None:
    # After a change in pyproject.toml any make target installs the project again.
    assert rocketpy.__version__ == version("rocketpy-spark")
