"""Sessions for queries that are run once: Spark evaluates them as they are, for to compile them takes longer."""

from __future__ import annotations

from typing import Any

_AS_IT_IS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def run_once(session: Any) -> Any:
    """The session, set so. What it answers is the same."""
    for name, value in _AS_IT_IS.items():
        session.conf.set(name, value)
    return session
