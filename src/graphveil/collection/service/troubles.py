"""Failures as a code for the client and a line for the log, neither of which holds anybody's data.

A client retries soon where the database is gone or locked, and later where its disk is full. Anything else is a bug.
"""

from __future__ import annotations

import logging
import traceback

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from graphveil.collection.service.limits import Buckets

#: What SQLite and PostgreSQL (class 53) call a disk without room; a file that may not grow is an error of writing.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR", "53100")
_LOG = logging.getLogger("graphveil.collection")


class LineLimit(logging.Filter):
    """Lets few lines of a kind through (three at once, then one a minute): a thousand a second would fill a disk."""

    def __init__(self, lines: Buckets | None = None) -> None:
        super().__init__()
        self._lines = lines or Buckets(rate=1 / 60, size=3.0)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written, by its format before values are put into it."""
        return self._lines.take(str(record.msg).partition("\n")[0])


#: For all lines that strangers can cause.
LINE_LIMIT = LineLimit()
_LOG.addFilter(LINE_LIMIT)


def code_of(error: BaseException) -> str:
    """Return the code of `answers.STATUS` for an exception."""
    if not isinstance(error, SQLAlchemyError):
        return "fault"
    cause = getattr(error, "orig", None)
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    if name.startswith(_NO_ROOM):
        return "disk-full"
    # SQLite's name for a wrong statement, of the same class as a locked file.
    if name == "SQLITE_ERROR":
        return "fault"
    is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
    return "busy" if is_lost or isinstance(error, OperationalError | InterfaceError | NoConnectionLeft) else "fault"


def log_error(error: BaseException) -> None:
    """Log an exception by its type and place; its message may quote what somebody sent, and is left out."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    at = ", ".join(f"{frame.name} line {frame.lineno}" for frame in frames)
    # One format for each code, so that `LineLimit` limits each by itself.
    _LOG.error(f"{code_of(error)}: %s in %s", type(error).__name__, at)
