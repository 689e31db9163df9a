"""Every error that Evert raises on purpose.

    EvertError
    ├── NotFound ──── NotADatabase, UnknownTopic, UnknownView, UnknownColumn, NotReady, Absent,
    │                 NoReplacement, NothingEarlier
    ├── Refused ───── BadName, BadSchema, BadRow, BadOption, BadStatement, BadQuery, NotTranslated,
    │                 TooManyRows, TopicExists, SchemaChangeRefused, UnknownRelation, Unsupported
    ├── Conflict ──── RequestReused, RequestForgotten
    ├── Fenced
    ├── Expired
    ├── Full ──────── DiskFull
    ├── Corrupt
    ├── DiskFailed
    ├── FormatTooNew
    ├── TimedOut
    ├── Stopped
    └── Disproved

Each carries a `code` (stable, the same in Python, in JSON and on the command line), the `exit_code` of the
command line, and where it is known a `hint` that names the next step.
"""

from __future__ import annotations

from typing import Any, ClassVar


class EvertError(Exception):
    """The root of all errors of Evert."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = {name: value for name, value in details.items() if value is not None}

    def as_dict(self) -> dict[str, Any]:
        """What the command line prints under `--json`."""
        return {"error": self.code, "message": self.message, "hint": self.hint, **self.details}


class NotFound(EvertError):
    """What was named is not there."""

    code = "not_found"
    exit_code = 3


class NotADatabase(NotFound):
    """The folder holds no Evert database."""

    code = "not_a_database"


class UnknownTopic(NotFound):
    """No topic has this name."""

    code = "unknown_topic"


class UnknownView(NotFound):
    """No view has this name."""

    code = "unknown_view"


class NotReady(NotFound):
    """The view is being built and has no answer yet."""

    code = "not_ready"


class Absent(NotFound):
    """The Python code of a view cannot be imported here."""

    code = "absent"


class NoReplacement(NotFound):
    """The view has no replacement that is being built or waits."""

    code = "no_replacement"


class NothingEarlier(NotFound):
    """The view has no earlier definition to go back to."""

    code = "nothing_earlier"


class UnknownColumn(NotFound):
    """The topic has no column of this name."""

    code = "unknown_column"


class Refused(EvertError):
    """The input does not fit and nothing of it was written."""

    code = "refused"
    exit_code = 4


class BadName(Refused):
    """The name cannot be used for a topic, a column or a group."""

    code = "bad_name"


class BadSchema(Refused):
    """The schema cannot be read, or holds a type that Evert cannot carry."""

    code = "bad_schema"


class BadRow(Refused):
    """A row does not fit its topic; `details` has the row's number, the column and the reason."""

    code = "bad_row"


class BadOption(Refused):
    """An option has a value that makes no sense."""

    code = "bad_option"


class UnknownRelation(Refused):
    """The query names a topic or view that is not there."""

    code = "unknown_relation"


class BadQuery(Refused):
    """The query cannot be read, or fails on the data; or it cannot be a view: it depends on more than the log."""

    code = "bad_query"


class NotTranslated(BadQuery):
    """The query uses something that has no tested equal in the embedded engine, and no Spark runs to take it."""

    code = "not_translated"


class TooManyRows(Refused):
    """The answer has more rows than are allowed."""

    code = "too_many_rows"


class BadStatement(Refused):
    """A statement cannot be read; `details` has its line and column."""

    code = "bad_statement"


class TopicExists(Refused):
    """A topic of this name, or of a name that differs in case only, exists with another definition."""

    code = "topic_exists"


class ViewExists(Refused):
    """A view of this name, or of a name that differs in case only, exists with another definition."""

    code = "view_exists"


class SchemaChangeRefused(Refused):
    """The new schema would make old rows unreadable or change what they mean."""

    code = "schema_change_refused"


class Unsupported(Refused):
    """This version of Spark, or a setting of its session, does not do what views need."""

    code = "unsupported"


class Conflict(EvertError):
    """The topic or key has moved past the position the writer had seen."""

    code = "conflict"
    exit_code = 5


class RequestReused(Conflict):
    """A request id, or a producer's sequence, came again with other content."""

    code = "request_reused"


class RequestForgotten(Conflict):
    """A producer's sequence is older than the ids that are still kept, so a repeat cannot be told."""

    code = "request_forgotten"


class Fenced(EvertError):
    """The caller lost its lease, its partition or its delivery to another, and may not write any more."""

    code = "fenced"
    exit_code = 6


class Expired(EvertError):
    """What was asked for has been removed by retention or compaction."""

    code = "expired"
    exit_code = 7


class Full(EvertError):
    """The topic takes no more rows until its consumers catch up or its bound is raised."""

    code = "full"
    exit_code = 8


class DiskFull(Full):
    """The disk has no room; nothing was written, and appends succeed again once there is room."""

    code = "disk_full"


class Corrupt(EvertError):
    """Stored data does not match its checksum or its place; it is not served."""

    code = "corrupt"
    exit_code = 9


class DiskFailed(EvertError):
    """The disk reported an error; what was being written is not acknowledged."""

    code = "disk_failed"
    exit_code = 12


class FormatTooNew(EvertError):
    """The folder was written by a newer version of Evert."""

    code = "format_too_new"
    exit_code = 10


class TimedOut(EvertError):
    """What was waited for did not happen in time."""

    code = "timed_out"
    exit_code = 11


class Disproved(EvertError):
    """A view's rows differ from those that Spark SQL computes from the log."""

    code = "disproved"
    exit_code = 14


class Stopped(EvertError):
    """The view stopped at a position, and its rows after that are not known."""

    code = "stopped"
    exit_code = 13
