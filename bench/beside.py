"""A process beside the one that is measured, with a Spark of its own: for all that is not Evert's.

Peers that are plain Spark, proofs, and whoever appends: they take none of the memory that is Evert's, and none of
the warmth of its JVM.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

import evert

P = ParamSpec("P")
T = TypeVar("T")


MEMORY = "4g"
"""What a peer's JVM may take: as much as everybody has."""


class Beside:
    """Within `with`, the process; `number` is its own, by which its memory can be left out."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_prepare)
        self.number: int = self.do(os.getpid)

    def do(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """What a function gives there; it and all that it is given and gives can be pickled."""
        return self._pool.submit(_done, work, *given, **named).result()

    def proves(self, db: evert.Database, view: str) -> bool:
        """Whether a view has the rows that plain Spark SQL makes of the log."""
        return self.do(_proves, db.path, view)

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()


def _prepare() -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory {MEMORY} pyspark-shell"


def _done(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """What a function gives; what is wrong with it as text, because not every error can be sent."""
    try:
        return work(*given, **named)
    except Exception:
        raise RuntimeError(traceback.format_exc()) from None


def _proves(path: Path, view: str) -> bool:
    with evert.open(path) as db:
        return all(proof.holds for proof in db.prove(view))
