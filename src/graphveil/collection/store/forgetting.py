"""Opening an epoch and scrubbing bodies exclude each other: an export holds all epochs or none."""

from __future__ import annotations

from sqlalchemy import Connection, select

from graphveil.collection.store.frozen import scrubbed
from graphveil.collection.store.tables import EPOCHS
from graphveil.errors import InputError

#: The epoch that is open, if one is.
OPEN = select(EPOCHS.c.epoch).where(EPOCHS.c.hash.is_(None))
#: The secret of an epoch's salts is deleted with its bodies.
_SCRUBBED = select(EPOCHS.c.epoch).where(EPOCHS.c.hash.is_not(None), EPOCHS.c.secret.is_(None)).limit(1)
#: Locked by whoever opens an epoch or scrubs closed epochs: of two at once, the second sees the changes of the first.
_LOCK_EPOCHS = select(EPOCHS.c.epoch).order_by(EPOCHS.c.epoch).with_for_update()


def is_scrubbed(connection: Connection) -> bool:
    return connection.execute(_SCRUBBED).scalar_one_or_none() is not None


def require_bodies(connection: Connection) -> None:
    """Raise InputError where bodies were scrubbed; nobody scrubs them before the transaction ends."""
    connection.execute(_LOCK_EPOCHS).all()
    # People would pay for reports that no export can hold: one of all epochs needs the bodies of all.
    if is_scrubbed(connection):
        raise scrubbed("sign another task: `graphveil collect init`")


def require_closed(connection: Connection) -> None:
    """Raise InputError while an epoch is open; nobody opens one before the transaction ends."""
    connection.execute(_LOCK_EPOCHS).all()
    # Its reports were acknowledged, and could not be exported beside bodies that are gone.
    if (epoch := connection.execute(OPEN).scalar_one_or_none()) is not None:
        remedy = "close it and export the collection, then scrub it"
        raise InputError(f"epoch {epoch} is open, and its reports are in no export", remedy=remedy)
