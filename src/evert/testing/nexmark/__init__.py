"""The Nexmark benchmark: its events and its queries."""

from evert.testing.nexmark.generator import SCHEMAS, Config, Events, events, schema, side_input
from evert.testing.nexmark.queries import QUERIES, Query

__all__ = ["QUERIES", "SCHEMAS", "Config", "Events", "Query", "events", "schema", "side_input"]
