"""Which messages are wanted: SQL92 over properties, a callable, and the broker's bit maps.

Values in, booleans out: reads no files. Tags are older and simpler, and are in `tags.py`.
"""

from typing import TYPE_CHECKING

from rocketpy.broker_core.lazy import lazy_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # or checkers would take any name for one that is there
    __getattr__ = lazy_names(
        __name__,
        {
            "bloom": "BloomBits RegisteredBits",
            "class_filter": "ClassFilter ClassFilterError Where",
            "sql": "SqlFilter in_maps",
        },
    )
