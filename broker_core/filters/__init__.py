"""Which messages are wanted: SQL92 over properties, a callable, and the broker's bit maps.

Values in, booleans out: reads no files. Tags are older and simpler, and are in `tags.py`.
"""

from rocketpy.broker_core.filters.bloom import BloomBits, RegisteredBits
from rocketpy.broker_core.filters.class_filter import ClassFilter, ClassFilterError, Where
from rocketpy.broker_core.filters.sql import SqlFilter, in_maps

__all__ = [
    "BloomBits",
    "ClassFilter",
    "ClassFilterError",
    "RegisteredBits",
    "SqlFilter",
    "Where",
    "in_maps",
]
