"""Ranges of the log: how many events lie in one, and where to cut it.

A cut lies between two positions, so it never splits a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from evert.catalog import Transaction


def events(tx: Transaction, topics: Sequence[int], after: int, upto: int) -> int:
    """About how many rows the topics have in `(after, upto]`; exact but for segments that are cut."""
    return sum(rows for _, _, rows in _pieces(tx, topics, after, upto))


def cut(tx: Transaction, topics: Sequence[int], after: int, upto: int, most: int) -> int:
    """The last position up to which the topics have at most so many rows, but at least one commit."""
    total = 0
    end = after
    for first, last, rows in sorted(_pieces(tx, topics, after, upto), key=lambda piece: piece[1]):
        if total + rows > most:
            if total:
                return max(end, after + 1)
            span = last - first + 1
            return min(upto, max(after + 1, first - 1 + max(1, span * most // rows)))
        total += rows
        end = last
    return upto


def _pieces(tx: Transaction, topics: Sequence[int], after: int, upto: int) -> list[tuple[int, int, int]]:
    """First position, last position and rows of what the log has in the range."""
    found: list[tuple[int, int, int]] = []
    for topic in topics:
        sql = "SELECT position, position, rows FROM tail WHERE topic = ? AND position > ? AND position <= ?"
        found += tx.all(sql, topic, after, upto)
        sql = "SELECT first, last, rows FROM segments WHERE topic = ? AND last > ? AND first <= ?"
        for first, last, rows in tx.all(sql, topic, after, upto):
            low, high = max(first, after + 1), min(last, upto)
            found.append((low, high, max(1, rows * (high - low + 1) // (last - first + 1))))
    return found
