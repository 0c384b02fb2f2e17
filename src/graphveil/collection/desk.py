"""An organiser's folder, and each step of a collection from there: sign, enrol, open, close, export.

organiser.key   signs; whoever has it can open epochs in the organiser's name
task.json       the signed task
collection.db   the database, if it is SQLite             database    the address of another database
tokens.csv      enrols each person once                   admin-token opens the collector's administration
"""

from __future__ import annotations

import os
import secrets
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.collection.service.tokens import in_order, links_at, replace_token, write_tokens
from graphveil.collection.task.declare import new_key, read_key, signed_opening, signed_task
from graphveil.collection.task.drafts import IDS, SCHEMA, TASK, read_draft, read_ids, refusals
from graphveil.device.people.people import ids_hash
from graphveil.device.task import Opening, moment, short_key
from graphveil.errors import InputError
from graphveil.files.writing import new_folder, partial_folder, sweep, sync_files, sync_folder, write_bytes
from graphveil.runtime.extras import require_packages

if TYPE_CHECKING:
    from graphveil.collection.store.store import Store

KEY, SIGNED, DATABASE, ADDRESS, TOKENS, ADMIN = (
    "organiser.key", "task.json", "collection.db", "database", "tokens.csv", "admin-token",
)  # fmt: skip
_PRIVATE = 0o600
#: The names that the folder's own steps read and write, draft and SQLite's log included: nothing else may use them.
RESERVED_NAMES = {
    KEY, SIGNED, DATABASE, ADDRESS, TOKENS, ADMIN, TASK, SCHEMA, IDS,
    *(f"{DATABASE}-{part}" for part in ("wal", "shm", "journal")),
}  # fmt: skip
#: The task while it is being signed.
_UNFINISHED = "task.json.unfinished"


class Desk:
    """An organiser's folder, with a draft or a task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sign(self, key: Path | None = None, database: str | None = None) -> dict[str, Any]:
        """Sign the draft and begin the database; return folder, hash, signer and guarantee.

        Args:
            key: file of the organiser's key, if there is one already.
            database: address; None: SQLite in the folder.

        Raises:
            InputError: the draft lacks something, or was signed before.
        """
        draft = read_draft(self.folder)
        if (self.folder / SIGNED).exists():
            raise InputError(
                f"{self.folder} holds a signed task", remedy="a task never changes: make another by `collect init`"
            )
        facts, key_file = draft.facts(), self.folder / KEY
        unfinished = self.folder / _UNFINISHED
        # The database first: where it cannot be opened, no key is left that never signed anything.
        with refusals(str(self.folder)), self._opened(database or self._sqlite_url()) as store:
            signer = read_key(key or key_file) if key or key_file.exists() else new_key(key_file)
            if key is not None and not key_file.exists():
                # Every epoch is opened with this key.
                write_bytes(key_file, key.read_bytes(), mode=_PRIVATE)
            # Left by an interrupted signing: nobody has seen that task, and the draft may have been edited since.
            if unfinished.exists():
                store.withdraw(unfinished.read_bytes())
            task = signed_task(facts, signer)
            # On disk before the database: after an interruption anywhere, signing again recognises its own task there.
            write_bytes(unfinished, task.data)
            sync_folder(self.folder)
            store.begin(task, ())
        self._keep_address(database)
        # Last: a folder with this file has all that the other steps need.
        unfinished.rename(self.folder / SIGNED)
        sync_folder(self.folder)
        signed = {"folder": str(self.folder), "task": task.hash.hex(), "signed_by": short_key(task.key)}
        return {**signed, "guarantee": list(task.guarantee)}

    def enrol(self, out: Path | None = None, tokens: Path | None = None, url: str | None = None) -> dict[str, Any]:
        """Give everybody a token; InputError where tokens were given out, or a file has other ids than the task.

        Args:
            out: a new csv file for ids and tokens.
            tokens: a csv file that has them already.
            url: of the collector, as people reach it: the file gets a link to the page for each person.
        """
        with self.store() as store:
            ids = read_ids(self.folder)
            # Every device would refuse the list, but only after tokens were handed out.
            if ids_hash(ids) != store.task().ids:
                raise InputError(f"{IDS} is not the list that was signed", where=str(self.folder), remedy="restore it")
            if tokens is not None:
                store.invite(in_order(tokens, ids))
                return {"people": len(ids), "tokens": str(tokens)}
            path = out or self.folder / TOKENS
            if out is not None and out.name != TOKENS:
                self._require_free(out)
            written = write_tokens(path, ids, None if url is None else links_at(url, store.task().hash))
            # The first is written here: a file that already exists is refused before the code below could remove it.
            first = next(written)
            try:
                store.invite(chain([first], written))
            except BaseException:
                # Tokens that enrol nobody must not be handed out.
                path.unlink()
                raise
            if url is not None:
                # For the link of a replaced token.
                store.keep("url", url.encode())
        return {"people": len(ids), "tokens": str(path), **({} if url is None else {"url": url.rstrip("/")})}

    def replace_token(self, id: str, url: str | None = None) -> dict[str, str]:
        """Replace somebody's lost token; return id and token, and a link where the address is known.

        Args:
            id: of a person who has not enrolled.
            url: of the collector; None: the one in everybody's links.
        """
        with self.store() as store:
            stored = store.setting("url")
            address = stored.decode() if url is None and stored is not None else url
            # Before the token is replaced: a mistyped address must not cost the person their old token.
            link = None if address is None else links_at(address, store.task().hash)
            replacement = replace_token(store, id)
        return replacement if link is None else {**replacement, "link": link(bytes.fromhex(replacement["token"]))}

    def open(self, key: Path | None = None, clock: Callable[[], float] = time.time) -> dict[str, Any]:
        """Close enrolment for an epoch, draw its nonce and sign the opening.

        Args:
            key: the organiser's, where it is kept outside the folder.
            clock: seconds since 1970.

        Raises:
            InputError: nobody has enrolled, the last epoch is still open, another key signed the task, it has closed,
                or the collection was scrubbed.
        """
        with self.store() as store:
            task, signer = store.task(), read_key(key or self.folder / KEY)
            # Every device would refuse the opening, and the nonce would be spent.
            if signer.public_key().public_bytes_raw() != task.key:
                raise InputError("the key is not the one that signed the task", where=str(key or self.folder / KEY))
            # From then on no device books a report, and no collector takes one.
            if clock() >= task.closes:
                raise InputError(
                    f"the task closed on {moment(task.closes)}",
                    remedy="what was received can be exported; sign another",
                )
            status = store.status()
            # An epoch without people would end without a report: whoever enrols later joins the next one.
            if not status["enrolled"]:
                raise InputError("nobody has enrolled", remedy="serve the collection and hand out its tokens first")
            # After a crash an epoch may be open without a signed opening: it keeps its nonce, since another one would
            # assign some people new coordinates.
            signed = store.setting("opening")
            if not status["open"] or (signed is not None and Opening.of(signed, task).epoch == status["epoch"]):
                store.open_epoch(secrets.token_bytes(16))
            nonces = store.nonces()
            store.keep("opening", signed_opening(task, nonces, signer))
        return {"epoch": len(nonces), "nonce": nonces[-1].hex(), "enrolled": status["enrolled"]}

    def close(self) -> dict[str, Any]:
        """Freeze the open epoch, and forget in which order its reports came; return its number, hash and count of
        reports, and whether the order is forgotten. Raises InputError: no epoch is open.
        """
        from graphveil.collection.service.arrival import forget

        with self.store() as store:
            epoch, digest = store.close_epoch()
            received = store.status()["received"]
            return {"epoch": epoch, "hash": digest.hex(), "received": received, "order_forgotten": forget(store)}

    def status(self) -> dict[str, Any]:
        with self.store() as store:
            task = store.task()
            facts: dict[str, Any] = {"name": task.name, "task": task.hash.hex(), "signed_by": short_key(task.key)}
            facts |= {"opens": task.opens, "closes": task.closes}
            frozen = {str(epoch): digest.hex() for epoch, (_, digest) in enumerate(store.closed_epochs(), start=1)}
            status = store.status()
            empty = store.empty_count(status["epoch"])
            # As an export counts reports towards the least number.
            counts = {"received": status["received"] - empty, "empty": empty}
            return {**facts, "least": task.least, **status, **counts, "hashes": frozen, "scrubbed": store.is_scrubbed}

    def export(self, out: Path, most_links: int | None = None) -> dict[str, Any]:
        """Write the reports into a new folder, whole or not at all; errors as `export.export` and `suspects.inspect`.

        Args:
            out: under no name that the folder uses itself.
            most_links: of one person, see `suspects.inspect`.
        """
        from graphveil.collection.export.export import export, read_export
        from graphveil.collection.export.moved import bounds, sentence_of
        from graphveil.collection.export.suspects import inspect

        self._require_free(out)
        # Removes what the downloads of killed processes have left in this folder.
        sweep(self.folder)
        # Under a hidden name until it is whole: an export that is cut off must not pass for a smaller collection.
        with self.store() as store, new_folder(out) as partial:
            facts = export(store, partial, most_links)
            collected = read_export(partial)
            findings = inspect(collected, most_links)
            forged = sentence_of(bounds(collected.task, len(collected.bodies.bits)))
        return {"folder": str(out), **facts, "findings": findings.facts, "forged": forged}

    def scrub(self, exported: Path) -> dict[str, Any]:
        """Delete the bodies of reports and end the collection; that they were sent, and by whom, stays on record.
        Raises InputError: the export is of another task or other epochs than are closed, or lacks a report; or an epoch
        is open.
        """
        from graphveil.collection.export.export import FILES, read_export

        collected = read_export(exported)
        # The export may be in memory only, and a power cut would lose it.
        sync_files(exported, FILES)
        with self.store() as store:
            if collected.task.hash != store.task().hash:
                raise InputError("the export is another collection's", where=str(exported))
            # For good: a report that this export lacked would be lost.
            return {"folder": str(self.folder), "forgotten": store.scrub(collected.last), "kept": str(exported)}

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the database of a signed task."""
        # Checked first: opening a missing SQLite file would create it.
        if not (self.folder / SIGNED).is_file():
            raise unsigned(self.folder)
        address = self.folder / ADDRESS
        with self._opened(address.read_text() if address.is_file() else self._sqlite_url()) as store:
            yield store

    def admin_token(self, store: Store) -> str | None:
        """Make the administration's token, store its hash and return the token; None if there is one already."""
        from graphveil.collection.store.store import hashed

        if store.setting("admin") is not None:
            return None
        # On disk before its hash is stored: in the other order a crash would leave a hash whose token nobody has. If
        # two processes start at once, the first names the file, and both store the hash of what it holds.
        path = self.folder / ADMIN
        with suppress(FileExistsError), partial_folder(path) as partial:
            write_bytes(partial / ADMIN, f"{secrets.token_hex(20)}\n".encode(), mode=_PRIVATE)
            os.link(partial / ADMIN, path)
        path.chmod(_PRIVATE)
        sync_folder(self.folder)
        token = path.read_text().strip()
        store.keep("admin", hashed(token.encode()))
        return token

    def _require_free(self, out: Path) -> None:
        # In any case of letters: some disks do not distinguish them.
        if out.name.casefold() in {*RESERVED_NAMES, _UNFINISHED} and out.parent.resolve() == self.folder.resolve():
            raise InputError(f"{out.name} is a name that the collection's folder uses itself", remedy="take another")

    def _keep_address(self, database: str | None) -> None:
        path = self.folder / ADDRESS
        if database is None:
            # An interrupted signing with another database may have left one.
            path.unlink(missing_ok=True)
        else:
            # It may hold a password.
            write_bytes(path, database.encode(), mode=_PRIVATE)

    def _sqlite_url(self) -> str:
        return f"sqlite:///{(self.folder / DATABASE).absolute()}"

    @contextmanager
    def _opened(self, url: str) -> Iterator[Store]:
        require_extra()
        from sqlalchemy.exc import SQLAlchemyError

        from graphveil.collection.store.store import Store
        from graphveil.collection.store.tables import opened

        try:
            store = Store(opened(url))
            try:
                yield store
            finally:
                store.engine.dispose()
        except SQLAlchemyError as error:
            # Without the address, which may hold a password.
            reason = str(getattr(error, "orig", None) or error).splitlines()[0]
            raise InputError(f"the database cannot be used ({reason})", where=str(self.folder)) from error


def unsigned(folder: Path) -> InputError:
    """Return the refusal of a folder without a signed task: it says which step comes next."""
    if not (folder / TASK).is_file():
        return InputError(f"{folder} holds no task", remedy="`graphveil collect init DATA -o FOLDER` begins")
    return InputError(
        f"{folder} holds no signed task", remedy=f"sign it: `graphveil collect sign {shlex.quote(str(folder))}`"
    )


def require_extra() -> None:
    """Raise MissingExtraError where a package that the collector needs is not installed."""
    require_packages("collect", "sqlalchemy", "fastapi", "uvicorn", where="collect")
