"""What failed, as a code to answer and a line to write down: neither holds a value of anybody's.

A database that is gone, or held by somebody else, is asked again; one that has no room is asked again later. Anything
else is a mistake of ours.
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


class Seldom(logging.Filter):
    """Lets a few lines of each kind through: a disk would be filled by saying one thing a thousand times a second.

    Args:
        lines: of a kind, three at once and then one a minute.
    """

    def __init__(self, lines: Buckets | None = None) -> None:
        super().__init__()
        self._lines = lines or Buckets(1 / 60, 3.0)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written: by what it says first, before values are put into it."""
        return self._lines.take(str(record.msg).partition("\n")[0])


#: Of all lines that strangers can cause.
SELDOM = Seldom()
_LOG.addFilter(SELDOM)


def code_of(error: BaseException) -> str:
    """Return the code of `answers.STATUS` that tells of a failure.

    Args:
        error: what was raised.
    """
    if not isinstance(error, SQLAlchemyError):
        return "fault"
    cause = getattr(error, "orig", None)
    name = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
    if name.startswith(_NO_ROOM):
        return "disk-full"
    # SQLite's word for a statement that is wrong, under the same class as for a file that is held by others.
    if name == "SQLITE_ERROR":
        return "fault"
    gone = isinstance(error, DBAPIError) and error.connection_invalidated
    return "busy" if gone or isinstance(error, OperationalError | InterfaceError | NoConnectionLeft) else "fault"


def write_down(error: BaseException) -> None:
    """Log a failure by its kind and place.

    Args:
        error: what was raised; its message may quote what somebody sent, and stays out.
    """
    places = traceback.extract_tb(error.__traceback__)
    at = ", ".join(f"{place.name} line {place.lineno}" for place in places[-4:])
    # A line of its own for each kind, of which few are written.
    _LOG.error(f"{code_of(error)}: %s in %s", type(error).__name__, at)
