"""An epoch: every view brought to one position of the log, in one commit.

Each view's query is run by Spark over the topics as they are at that position.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa

from evert.catalog import Lease, Transaction, acquire, release
from evert.epoch import spark as on_spark
from evert.errors import Refused
from evert.views import view as views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evert.database import Database

LEASE = "runner"
LEASE_TIME = 60_000_000


class Runner:
    """Runs epochs of one database, one process at a time."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._owner = uuid.uuid4().hex
        self._spark: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = on_spark.session()
        return self._spark

    def epoch(self) -> int:
        """Bring all views to the head of the log; the position."""
        lease = self._lease()
        try:
            position = self._db.position
            with self._db.catalog.read() as tx:
                queries = views.definitions(tx)
            answers = {name: self._run(name, query, queries, position) for name, query in queries.items()}

            def commit(tx: Transaction) -> None:
                lease.check(tx)
                for name, rows in answers.items():
                    views.store(tx, name, position, rows)

            self._db.catalog.write(commit)
        finally:
            release(self._db.catalog, lease)
        return position

    def _lease(self) -> Lease:
        while (lease := acquire(self._db.catalog, LEASE, self._owner, LEASE_TIME)) is None:
            self._db.clock.sleep(0.05)
        return lease

    def _run(self, name: str, query: str, queries: dict[str, str], position: int) -> pa.Table:
        from pyspark.errors import PySparkException

        session = self.spark.newSession()
        for topic in self._db.log.topics().values():
            if _mentions(query, topic.name):
                frame = on_spark.read_topic(session, self._db, topic.name, upto=position)
                rows = (
                    on_spark.latest(frame, topic)
                    if topic.kind == "table"
                    else frame.select(*topic.schema.names)
                )
                rows.createOrReplaceTempView(topic.name)
        try:
            return session.sql(query).toArrow()
        except PySparkException as error:
            raise Refused(f"the view {name} failed: {error}", hint="see the query in db.views") from error


def _mentions(query: str, name: str) -> bool:
    return re.search(rf"(?i)(?<![\w`]){re.escape(name)}(?!\w)", query) is not None
