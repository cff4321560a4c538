"""Settings by RocketMQ's own property names: what `broker.conf` and `namesrv.conf` have in common.

Settings are a frozen dataclass whose fields are texts, whole numbers and truth values. The name of
a property is that of its field in camel case, unless the field gives another one by named().
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from rocketpy.broker_core.errors import RocketPyError

_PROPERTY = "property"
# How metrics are told, as Apache's MetricsExporterType has it.
DISABLED, PROMETHEUS = "DISABLE", "PROM"


class SettingError(RocketPyError):
    """Is raised for a property of `broker.conf` or `namesrv.conf` whose value cannot be."""

    def __init__(self, name: str, value: str, remedy: str) -> None:
        super().__init__(name, value, remedy)
        self.name, self.value, self.remedy = name, value, remedy

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.remedy}"


def named(name: str, default: Any) -> Any:
    """Return a field whose property has a name of its own."""
    return field(default=default, metadata={_PROPERTY: name})


def check_exporter_type(value: str) -> None:
    """Accept how metrics are to be told.

    Raises:
        SettingError: it is another way than Prometheus'.
    """
    if value not in (DISABLED, PROMETHEUS):
        remedy = f"give {PROMETHEUS}, or {DISABLED}: Prometheus may ask, and nothing is pushed"
        raise SettingError("metricsExporterType", value, remedy)


class PropertyTable:
    """The properties of a class of settings. Its field `rest` keeps those that it does not know."""

    def __init__(self, settings: type[Any], rest: str) -> None:
        known = [each for each in fields(settings) if each.name != rest]
        # Each property with its attribute.
        self.attributes: dict[str, str] = {
            each.metadata.get(_PROPERTY) or _camel_case(each.name): each.name for each in known
        }
        self._kinds = {each.name: str(each.type) for each in known}

    def parsed(self, properties: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of attributes, and the properties that are not known.

        Raises:
            SettingError: a value is not of its kind; says which.
        """
        known, others = dict[str, Any](), dict[str, str]()
        for name, text in properties.items():
            attribute = self.attributes.get(name)
            if attribute is None:
                others[name] = text
            else:
                known[attribute] = _value(name, text.strip(), self._kinds[attribute])
        return known, others

    def texts(self, settings: object) -> dict[str, str]:
        """Return what settings say, by the names of properties."""
        return {
            name: _text(getattr(settings, attribute)) for name, attribute in self.attributes.items()
        }

    def nearest(self, name: str) -> str | None:
        """Return the known property whose name is most like another."""
        found = difflib.get_close_matches(name, self.attributes, n=1, cutoff=0.75)
        return found[0] if found else None


def _camel_case(attribute: str) -> str:
    first, *others = attribute.split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(name: str, text: str, kind: str) -> str | int | bool:
    if kind == "int":
        try:
            return int(text)
        except ValueError as cause:
            raise SettingError(name, text, "give a whole number") from cause
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise SettingError(name, text, "give true or false")
        return text.lower() == "true"
    return text


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
