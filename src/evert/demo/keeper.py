"""The process that keeps the shop's views, told what to do line by line, and telling in JSON what it has done.

build ── take in what is there   go ── run epochs   pause ── stop running them   prove ── compare with Spark   end
"""

from __future__ import annotations

import json
import sys
import threading
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evert.database import Database
from evert.database import open as open_database

if TYPE_CHECKING:
    from evert.epoch.epoch import EpochDone


def definitions() -> str:
    """The shop's streams, tables and views."""
    return (files("evert.demo") / "shop.sql").read_text("utf-8")


def main() -> None:
    with open_database(sys.argv[1]) as db:
        for result in db.sql(definitions()):
            tell(done=result.message)
        tell(defined=len(db.views))
        keeper = _Keeper(db)
        for line in sys.stdin:
            keeper.obey(line.strip())
            if line.strip() == "end":
                return
        keeper.obey("pause")


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class _Keeper:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def obey(self, order: str) -> None:
        if order == "go" and self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run)
            self._thread.start()
        elif order in ("pause", "prove", "end") and self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
        if order == "build":
            self._db.refresh(on_epoch=_epoch)
            tell(built=True)
        if order == "pause":
            tell(paused=True)
        if order == "prove":
            self._prove()

    def _run(self) -> None:
        self._db.run(stop=self._stop, on_epoch=_epoch)

    def _prove(self) -> None:
        self._db.refresh(on_epoch=_epoch)
        for proof in self._db.prove():
            tell(
                view=proof.view,
                holds=proof.holds,
                rows=proof.rows,
                estimates=list(proof.estimates),
                missing=str(proof.missing)[:500],
                unexpected=str(proof.unexpected)[:500],
            )
        tell(proved=True)


def _epoch(done: EpochDone) -> None:
    tell(
        epoch=done.position,
        rows=done.rows,
        milliseconds=done.milliseconds,
        changed=sum(done.changed.values()),
    )


if __name__ == "__main__":
    main()
