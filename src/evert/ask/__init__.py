"""Any SELECT over topics and views at one position, without a JVM."""

from evert.ask.answer import Answer

__all__ = ["Answer"]
