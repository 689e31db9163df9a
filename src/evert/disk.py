"""Errors of the disk, in Evert's words."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evert.errors import DiskFailed, DiskFull

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` into `DiskFull` or `DiskFailed`; what is not there stays `FileNotFoundError`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise full(path) from error
        raise DiskFailed(f"the disk of {path} failed: {error.strerror or error}", file=path.name) from error


def full(path: Path) -> DiskFull:
    return DiskFull(f"no room on the disk of {path}", hint="free some space; appends succeed again then")
