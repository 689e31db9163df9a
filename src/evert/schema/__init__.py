"""What fits? Schemas in Spark's words, and rows checked against them."""

from evert.schema.schema import Schema

__all__ = ["Schema"]
