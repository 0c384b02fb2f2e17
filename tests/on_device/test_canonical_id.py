"""One form of an id in both languages, whatever version of Unicode each knows; two ids of one form are one person's."""

from __future__ import annotations

import hashlib
import re
import subprocess
import unicodedata

import pytest

from graphveil.device.errors import DeviceError
from graphveil.device.people.canonical_id import _UNSEEN, canonical_id, require_distinct, spelled_id
from tests.on_device.javascript import BUNDLE, node
from tests.on_device.vectors import TWINS
from tests.pages import DOCS

#: SHA-256 of a byte for each code point that is tried: 1 where Unicode 14.0 assigns a public character, 0 elsewhere.
ASSIGNED = "a95df39a49d1c2ac13a147c2ca0ce8c2b3dfb9c081643c4182a410eb491a8f7d"


def accepted(id: str) -> bool:
    try:
        return bool(canonical_id(id))
    except DeviceError:
        return False


@pytest.mark.parametrize(("first", "other"), TWINS, ids=ascii)
def test_what_people_cannot_tell_apart_has_one_form(first: str, other: str) -> None:
    assert canonical_id(first) == canonical_id(other)
    with pytest.raises(DeviceError, match=r"^bad-ids: .* are one id to people") as refused:
        require_distinct(["first", first, "between", other])
    # Both are named so that they can be told apart: letters that nobody sees are spelled.
    assert spelled_id(first) in refused.value.detail and spelled_id(other) in refused.value.detail


def test_what_people_can_tell_apart_has_two() -> None:
    ids = ("anna", "anne", "Anna B", "Anna C", "zo\u00eb", "zoe", "1", "01", "\u0131lk", "ilk", "\u4e00", "a.b", "a-b")
    require_distinct(ids)
    assert len({canonical_id(spelling) for spelling in ids}) == len(ids)
    for spelling in ids:
        assert canonical_id(canonical_id(spelling)) == canonical_id(spelling)


FORMS = """
import { createHash } from "node:crypto";
import { canonicalId } from "%s";
// A refusal's stack takes longer than its form.
Error.stackTraceLimit = 0;
const known = [], forms = createHash("sha256");
const form = (id) => { try { return canonicalId(id); } catch { return ""; } };
for (let begin = 0; begin < 0xe1000; begin += begin === 0x34000 - 16 ? 0xe0000 - 0x34000 + 16 : 16) {
  let block = "";
  for (let code = begin; code < begin + 16; code++) {
    const one = String.fromCodePoint(code), own = form("a" + one);
    known.push(own ? 1 : 0);
    if (own) block += one + "\\u0301";
  }
  if (block) forms.update(form(block + "a") + "\\n");
}
console.log(createHash("sha256").update(Uint8Array.from(known)).digest("hex"), forms.digest("hex"));
"""


@pytest.mark.slow
def test_both_languages_make_the_same_form_of_every_character() -> None:
    """Each with an accent behind it, which joins the letter before; of 217,088 code points."""
    assigned, forms = bytearray(), hashlib.sha256()
    # Planes 4 to 13 and most of 3 are empty in every version so far; planes 15 and 16 are private.
    for begin in (*range(0, 0x34000, 16), *range(0xE0000, 0xE1000, 16)):
        letters = [chr(code) for code in range(begin, begin + 16)]
        accepts = [accepted("a" + letter) for letter in letters]
        assigned += bytes(accepts)
        block = "".join(letter + "\u0301" for letter, is_known in zip(letters, accepts, strict=True) if is_known)
        forms.update((canonical_id(block + "a") + "\n").encode() if block else b"")
    script = FORMS % (BUNDLE.parent / "people.js").as_uri()
    run = subprocess.run([node(), "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [hashlib.sha256(assigned).hexdigest(), forms.hexdigest()]
    # On every Python: what 14.0 assigns, less private characters and halves of characters.
    assert hashlib.sha256(assigned).hexdigest() == ASSIGNED


def test_the_standard_lists_what_nobody_sees() -> None:
    """The page's ranges are those of the program; they hold all white space and controls, and no letter."""
    text = (DOCS / "standard" / "task.md").read_text().partition("*What nobody sees*")[2].partition("\n\n")[0]
    listed: set[str] = set()
    for low, high in re.findall(r"([0-9A-F]{4,5})(?:\.\.([0-9A-F]{4,5}))?", text):
        listed |= set(map(chr, range(int(low, 16), int(high or low, 16) + 1)))
    every = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE1000))]
    assert {letter for letter in every if _UNSEEN.fullmatch(letter)} == listed
    kinds = {unicodedata.category(letter) for letter in listed} - {"Cn"}
    assert {letter for letter in every if unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Zs")} <= listed
    assert kinds == {"Cc", "Cf", "Lo", "Mn", "So", "Zl", "Zp", "Zs"}
