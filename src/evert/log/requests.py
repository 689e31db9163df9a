"""A request id, or a producer's sequence, makes a retried commit happen once.

Ids are kept for `ids_kept` (see `config`). After that a producer's old sequences are refused rather than
guessed at; a request id that is forgotten is taken as new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from evert.catalog import Transaction
from evert.errors import RequestForgotten, RequestReused
from evert.log.protocol import Request, Write
from evert.schema.rows import digest


def content(writes: Iterable[Write]) -> bytes:
    """A digest of what a commit writes, whatever the order of its topics."""
    total = hashlib.blake2b(digest_size=16)
    for topic, rows in sorted((write.topic.id, digest(write.rows)) for write in writes):
        total.update(f"{topic}:".encode() + rows)
    return total.digest()


def seen(tx: Transaction, request: Request, digest_: bytes) -> int | None:
    """The position of the first time, or None if this is the first time."""
    row = tx.one(
        "SELECT position, digest FROM requests WHERE producer = ? AND id = ?", request.producer, request.id
    )
    if row is not None:
        if bytes(row[1]) != digest_:
            raise RequestReused(
                f"{_words(request)} was used at position {row[0]} with other content",
                hint="give each request its own id; repeat an id only with the same rows",
                position=row[0],
            )
        return int(row[0])
    if request.producer:
        forgotten = tx.one("SELECT forgotten FROM producers WHERE producer = ?", request.producer)
        if forgotten is not None and int(request.id) <= forgotten[0]:
            raise RequestForgotten(
                f"{_words(request)} is too old to tell whether it was written",
                hint=f"go on with a sequence above {forgotten[0]}",
            )
    return None


def remember(tx: Transaction, request: Request, digest_: bytes, position: int, at: int) -> None:
    tx.run("INSERT INTO requests VALUES (?, ?, ?, ?, ?)", request.producer, request.id, position, digest_, at)


def forget(tx: Transaction, before: int) -> int:
    """Drop the ids that are older than a time; how many."""
    highest: dict[str, int] = {}
    for producer, number in tx.all(
        "SELECT producer, id FROM requests WHERE at < ? AND producer <> ''", before
    ):
        highest[producer] = max(highest.get(producer, 0), int(number))
    for producer, sequence in highest.items():
        tx.run(
            "INSERT INTO producers VALUES (?, ?) ON CONFLICT (producer) DO UPDATE"
            " SET forgotten = max(forgotten, excluded.forgotten)",
            producer,
            sequence,
        )
    return tx.run("DELETE FROM requests WHERE at < ?", before)


def _words(request: Request) -> str:
    if request.producer:
        return f"sequence {request.id} of the producer {request.producer!r}"
    return f"the request id {request.id!r}"
