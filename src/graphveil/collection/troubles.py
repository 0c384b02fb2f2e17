"""What failed, as a code to answer and a line to write down: neither holds a value of anybody's.

A database that is gone, or held by somebody else, is asked again; one that has no room is asked again later. Anything
else is a mistake of ours.
"""

from __future__ import annotations

import logging
import traceback

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from graphveil.collection.limits import Buckets

#: What SQLite and PostgreSQL (class 53) call a disk without room; a file that may not grow is an error of writing.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR", "53100")
_LOG = logging.getLogger("graphveil.collection")
#: Lines of each kind: three at once, then one a minute.
_SELDOM = Buckets(1 / 60, 3.0)


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
    # A disk that is full would be filled by saying so a thousand times a second.
    if not _SELDOM.take(code_of(error)):
        return
    places = traceback.extract_tb(error.__traceback__)
    at = ", ".join(f"{place.name} line {place.lineno}" for place in places[-4:])
    _LOG.error("%s: %s in %s", code_of(error), type(error).__name__, at)
