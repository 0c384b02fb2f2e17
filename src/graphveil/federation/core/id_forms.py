"""The form in which holders compare ids, as their agreement names it; each id is put into it before it is blinded.

    exact       the text as it is, but for encodings of the same accents (`crypto.psi`)
    canonical   as the collector tells people apart: NFKC, no capitals, no spaces, nothing invisible
    email       canonical, and NAME@DOMAIN; at gmail.com also no dots in the name and nothing from a "+" on, and
                googlemail.com is gmail.com

Sources of the last: Unified ID 2.0, "Normalization and Encoding"; Gmail Help, "Dots don't matter in Gmail addresses":
elsewhere two such addresses may be two people's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from torch import Tensor

from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import canonical_id, known_as, one_id
from graphveil.errors import DataError
from graphveil.federation.crypto.masks import as_message

EXACT = "exact"
#: Two names of one mail service: the same name at both is one mailbox.
_ONE_MAILBOX = ("gmail.com", "googlemail.com")
_DIGEST = 16


def _email(id: str) -> str:
    name, _, domain = canonical_id(id).partition("@")
    if domain in _ONE_MAILBOX:
        name, domain = name.partition("+")[0].replace(".", ""), _ONE_MAILBOX[0]
    if not name or not domain or "@" in domain:
        raise DeviceError("bad-ids", f"the id {id!a} is not an address NAME@DOMAIN")
    return f"{name}@{domain}"


#: Name in the agreement -> the form of an id.
FORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {EXACT: lambda id: id, "canonical": canonical_id, "email": _email}
)


def in_form(form: str, ids: Sequence[str], where: str) -> list[str]:
    """Return ids in the form that was agreed; DataError where an id has no such form, or two have one.

    Args:
        form: a name in `FORMS`.
        where: the holder, for messages.
    """
    try:
        forms = [FORMS[form](id) for id in ids]
    except DeviceError as error:
        raise DataError(error.detail, where=where, allowed=f"ids of the form {form!r}, as agreed") from error
    first_row: dict[str, int] = {}
    for row, text in enumerate(forms):
        # Two rows of one person cannot both be in the common order: both ids are named, as the files have them.
        if first_row.setdefault(text, row) != row:
            raise DataError(one_id(ids[first_row[text]], ids[row]), where=where, allowed="each person once")
    return forms


def digests_of(ids: Sequence[str], salt: bytes) -> Tensor:
    """Return a keyed digest of each id, uint8 [n, 16], by which a holder recognises a person.

    Args:
        ids: in the agreed form.
        salt: secret, 32 bytes.
    """
    # In one form whatever form was agreed: somebody who returns in capitals would otherwise be published a second time.
    texts = (known_as(text).encode("utf-8", "surrogatepass") for text in ids)
    joined = b"".join(hashlib.blake2b(text, digest_size=_DIGEST, key=salt).digest() for text in texts)
    return as_message(joined).view(-1, _DIGEST)
