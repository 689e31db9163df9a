"""`evert init` and `evert topics`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from evert.cli.base import Command, Group, complete_topics, confirmed, session
from evert.cli.options import given, topic_options
from evert.cli.output import answer, described, listing, sized
from evert.cli.times import iso, spoken
from evert.database import Database
from evert.database import open as open_database
from evert.log.topic import DURATIONS, Options, Topic

_SHOWN = ("topic", "kind", "key", "partitions", "rows", "size", "positions", "tail", "segments")


@click.command(cls=Command)
@click.argument("path", type=click.Path(file_okay=False, path_type=Path))
def init(path: Path) -> None:
    """Make a database in the folder PATH; fine if it is there already.

    Example: evert init shop
    """
    with open_database(path) as db:
        position = db.position
    answer({"path": str(path), "position": position}, f"{path} is ready, at position {position}")


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def topics(ctx: click.Context) -> None:
    """List the topics, or make, show, change and drop one.

    Example: evert topics
    """
    if ctx.invoked_subcommand is None:
        with session().open() as db:
            found = [_listed(db, topic) for topic in db.log.topics().values()]
        listing(found, _SHOWN if not session().json else (), empty="there are no topics yet")


@topics.command()
@click.argument("name")
@click.argument("schema", required=False)
@click.option("--table", is_flag=True, help="A table, whose rows replace each other by key.")
@click.option("--key", help="The key's columns, as in 'id' or 'shop,id'.")
@click.option("--partitions", type=int, default=1, show_default=True, help="How many partitions.")
@click.option(
    "--like",
    type=click.Path(exists=True, dir_okay=False),
    help="Take the schema from a Parquet file instead.",
)
@topic_options
def create(
    name: str,
    schema: str | None,
    table: bool,
    key: str | None,
    partitions: int,
    like: str | None,
    **options: Any,
) -> None:
    """Make the topic NAME with a SCHEMA in Spark's DDL; fine if it is there with the same definition.

    Example: evert topics create users "id BIGINT, country STRING" --table --key id
    """
    if (schema is None) == (like is None):
        raise click.UsageError("give a schema, or --like a Parquet file")
    ddl = schema if schema is not None else _schema_of(str(like))
    columns = [part.strip() for part in key.split(",")] if key else None
    with session().open() as db:
        if table:
            db.table(name, ddl, key=columns or (), partitions=partitions, **given(options))
        else:
            db.stream(name, ddl, key=columns, partitions=partitions, **given(options))
        topic = db.definition(name)
    answer(_defined(topic), f"{topic.name} is a {topic.kind} of {topic.schema.ddl()}")


@topics.command()
@click.argument("name", shell_complete=complete_topics)
def show(name: str) -> None:
    """Everything about one topic: schema, options, sizes, offsets.

    Example: evert topics show clicks
    """
    with session().open() as db:
        topic = db.definition(name)
        held, ends = db.topic(name).sizes(), db.topic(name).offsets()
    fields = {**_defined(topic), **asdict(held), "created": iso(topic.created)}
    parts = [{"partition": p, "first_offset": first, "next_offset": after} for p, first, after in ends]
    if session().json:
        described({**fields, "offsets": parts})
        return
    fields |= {"key": ", ".join(topic.key) or None, "bytes": sized(held.bytes)}
    del fields["options"]
    described({**fields, **_spoken(topic.options)})
    click.echo()
    listing(parts, ("partition", "first_offset", "next_offset"), empty="")


@topics.command()
@click.argument("name", shell_complete=complete_topics)
@click.option("--schema", help="The whole new schema: nullable columns may be added and numbers widened.")
@topic_options
def alter(name: str, schema: str | None, **options: Any) -> None:
    """Change the schema or the options of the topic NAME; the value none takes a bound away.

    Example: evert topics alter clicks --retain "30 days"
    """
    changes = given(options)
    if schema is None and not changes:
        raise click.UsageError("nothing to change: give --schema or an option")
    with session().open() as db:
        db.alter(name, schema, **changes)
        topic = db.definition(name)
    answer(_defined(topic), f"{topic.name} is changed")


@topics.command()
@click.argument("name", shell_complete=complete_topics)
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(name: str, yes: bool) -> None:
    """Remove the topic NAME with all its rows.

    Example: evert topics drop clicks --yes
    """
    with session().open() as db:
        topic = db.definition(name)
        held = db.topic(name).sizes()
        confirmed(f"{topic.name} has {held.rows:,} rows. Drop it?", yes)
        db.drop(name)
    answer({"dropped": topic.name, "rows": held.rows}, f"{topic.name} and its {held.rows:,} rows are gone")


def _schema_of(file: str) -> str:
    import pyarrow.parquet as pq

    from evert.schema.schema import Schema

    return Schema.from_arrow(pq.read_schema(file)).ddl()


def _listed(db: Database, topic: Topic) -> dict[str, Any]:
    held = db.topic(topic.name).sizes()
    fields = {**_defined(topic), **asdict(held)}
    if session().json:
        return fields
    first, last = held.first_position, held.last_position
    return {
        **fields,
        "key": ", ".join(topic.key),
        "size": sized(held.bytes),
        "positions": "-" if first is None else f"{first} to {last}",
        "tail": f"{held.tail_rows:,} rows" if held.tail_rows else "-",
    }


def _defined(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "kind": topic.kind,
        "schema": topic.schema.ddl(),
        "schema_version": topic.version,
        "key": list(topic.key),
        "partitions": topic.partitions,
        "options": _spoken(topic.options),
    }


def _spoken(options: Options) -> dict[str, Any]:
    return {
        name: spoken(value) if name in DURATIONS and value is not None else value
        for name, value in asdict(options).items()
    }
