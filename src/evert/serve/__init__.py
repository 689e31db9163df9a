"""A database over HTTP: events in, views and their changes out, and a page that shows it all.

    request ── guard (host, origin, token) ── endpoint (parameters, limits) ── the same calls as in Python
    catalog ── one watch for all ──> changes of views, status ──> server-sent events

It needs the extra `serve`.
"""

from evert.serve.server import Limits, app

__all__ = ["Limits", "app"]
