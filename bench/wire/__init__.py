"""rocketpy's broker beside Apache's, both asked by the same Java client.

Jars, compiler and JVMs are those of the interop tests, which the project's folder makes known.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
