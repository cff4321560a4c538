"""`rocketpy store`: the four commands and their options. The work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocketpy.broker_core.cli import texts
from rocketpy.broker_core.cli.commands import Commands
from rocketpy.broker_core.cli.completion import complete_topic
from rocketpy.broker_core.cli.options import AsJson, StorePath, option, time_ms
from rocketpy.broker_core.store_path import store_path

store_app = Commands(help=texts.STORE)


@store_app.command(help=texts.STAT)
def stat(
    path: StorePath,
    queues: Annotated[bool, typer.Option("--queues", help="Show each queue on its own.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the system's empty topics as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in a store: log, topics, groups, index, and whether it is in use."""
    from rocketpy.broker_core.cli.stat import show

    show(path, by_queue=queues, everything=everything, as_json=as_json)


@store_app.command(help=texts.VERIFY)
def verify(path: StorePath, as_json: AsJson = False) -> None:
    """Check every byte of a store, and list all that is wrong."""
    from rocketpy.broker_core.cli.verify import check

    check(path, as_json=as_json)


@store_app.command(help=texts.DUMP)
def dump(
    path: StorePath,
    topic: Annotated[
        str | None, option("NAME", "Only this topic.", complete=complete_topic)
    ] = None,
    queue: Annotated[int | None, option("ID", "Only this queue.")] = None,
    from_offset: Annotated[int | None, option("N", "From this queue offset on.")] = None,
    to_offset: Annotated[int | None, option("N", "Before this queue offset.")] = None,
    start_time: Annotated[str | None, option("TIME", "Stored at or after this time.")] = None,
    end_time: Annotated[str | None, option("TIME", "Stored before this time.")] = None,
    key: Annotated[str | None, option("KEY", "Only messages with this key or unique key.")] = None,
    tags: Annotated[str | None, option("TAGS", "Only these tags: 'paid || sent'.")] = None,
    sql: Annotated[str | None, option("SQL", "Only what passes: \"region = 'eu'\".")] = None,
    limit: Annotated[int | None, option("N", "At most so many messages.", least=0)] = None,
    columns: Annotated[str | None, option("NAMES", "Only these fields, with commas.")] = None,
    scan: Annotated[
        bool, typer.Option("--scan", help="In the order of the log; needs no queues.")
    ] = False,
    skip_damage: Annotated[
        bool, typer.Option("--skip-damage", help="With --scan: go on after damaged bytes.")
    ] = False,
    _as_json: Annotated[bool, typer.Option("--json", help="It is JSON with or without.")] = False,
) -> None:
    """Print messages as JSON, one object per line."""
    from rocketpy.broker_core.cli.dump import print_messages
    from rocketpy.broker_core.cli.wanted import Wanted
    from rocketpy.broker_core.filters import SqlFilter

    wanted = Wanted(
        topic=topic,
        queue_id=queue,
        from_offset=from_offset,
        to_offset=to_offset,
        start_ms=time_ms(start_time),
        end_ms=time_ms(end_time),
        key=key,
        tags=tags,
        sql=SqlFilter.of(sql) if sql is not None else None,
    )
    print_messages(
        path, wanted, columns=columns, limit=limit, is_scan=scan, skip_damage=skip_damage
    )


@store_app.command(help=texts.REPAIR)
def repair(
    path: StorePath,
    to: Annotated[
        Path | None, option("NEW", "Make a mended copy in this new folder.", parse=store_path)
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Mend the store itself, keeping the old files.")
    ] = False,
    no_placeholders: Annotated[
        bool, typer.Option("--no-placeholders", help="Leave lost messages out of the log.")
    ] = False,
    queue_file_entries: Annotated[
        int | None,
        option("N", "Entries of a queue file, where none is left to tell: 300000.", least=1),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild consume queues and index from the commit log."""
    if (to is None) == (not in_place):
        raise typer.BadParameter("give either --to NEW, to make a mended copy, or --in-place")
    from rocketpy.broker_core.cli.repair import mend

    mend(
        path,
        to,
        placeholders=not no_placeholders,
        queue_file_entries=queue_file_entries,
        as_json=as_json,
    )
