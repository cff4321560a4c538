"""What `rocketpy topic` does."""

from __future__ import annotations

from pathlib import Path

import orjson
import typer
from rich.console import Console

from rocketpy.broker_core.cli.terminal import count_text, plain_table
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.metadata import is_system_topic


def show(path: Path, *, everything: bool, as_json: bool) -> None:
    """Print topics, each with its queues and how many messages they hold."""
    with open_store(path, read_only=True) as store:
        found = [
            {
                "topic": name,
                "queues": config.write_queues,
                "messages": sum(end - first for first, end in store.queues(name).values()),
                "perm": config.perm,
            }
            for name, config in sorted(store.topics().items())
            if everything or not is_system_topic(name)
        ]
    if as_json:
        typer.echo(orjson.dumps(found).decode())
        return
    table = plain_table("Topic", "Queues>", "Messages>")
    for topic in found:
        table.add_row(str(topic["topic"]), f"{topic['queues']:,}", f"{topic['messages']:,}")
    Console(highlight=False).print(table)


def create(path: Path, name: str, queues: int | None) -> None:
    """Make a topic; the store is made if it is missing."""
    with open_store(path) as store:
        before = store.topics().get(name)
        after = store.create_topic(name, queues)
    text = f"topic {name} has {count_text(after.write_queues, 'queue')}"
    typer.echo(text if before != after else f"{text}, as before")
