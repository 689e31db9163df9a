"""What the crash tests run while the disk fails or the process dies: a little of everything that writes.

Every row names its batch and the size of the batch, so that a reader can tell whole from torn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evert
from evert.errors import EvertError

SETTINGS: dict[str, Any] = {
    "direct_rows": 20,
    "spill_bytes": 400,
    "seal_rows": 15,
    "seal_entries": 5,
    "segment_rows": 40,
    "background": False,
}
SCHEMA = "batch INT, row INT, size INT"
SIZES = (1, 30, 15, 1)


def rows(batch: int, size: int) -> list[dict[str, int]]:
    return [{"batch": batch, "row": row, "size": size} for row in range(size)]


def work(folder: Path, say: Callable[[str], None]) -> None:
    """Append batches and look after the log; say which batches were acknowledged."""
    with evert.open(folder, **SETTINGS) as db:
        facts = db.stream("facts", SCHEMA, partitions=2)
        table = db.table("table", SCHEMA, key="row")
        for batch, size in enumerate(SIZES):
            attempt(
                say, f"facts {batch}", lambda b=batch, s=size: facts.append(rows(b, s), request_id=f"b{b}")
            )
            attempt(say, f"table {batch}", lambda b=batch, s=size: table.upsert(rows(b, s)))
            if batch == 2:
                attempt(say, "kept", db.maintain)
        attempt(say, "compacted", table.compact)
        with_both(db, say)


def with_both(db: evert.Database, say: Callable[[str], None]) -> None:
    def commit() -> None:
        with db.transaction() as tx:
            tx.append("facts", rows(100, 2))
            tx.upsert("table", rows(100, 2))

    attempt(say, "both 100", commit)


def attempt(say: Callable[[str], None], what: str, call: Callable[[], Any]) -> None:
    say(f"try {what}")
    try:
        call()
    except EvertError as error:
        say(f"failed {what}: {error.code}")
    else:
        say(f"ack {what}")


def say_to(file: Path) -> Callable[[str], None]:
    """Lines that survive the death of the process the moment they are said."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    return lambda line: (os.write(handle, f"{line}\n".encode()), None)[1]
