"""Ids are compared in the form that was agreed: what counts as one person's, what stays apart, what is refused."""

from __future__ import annotations

import pytest

from graphveil.errors import DataError
from graphveil.federation.core.id_forms import FORMS, in_form

SPELLINGS = {
    "exact": [("Ann", "ann"), ("07", "7"), (" b", "b"), ("a@x.org", "A@x.org")],
    "canonical": [("07", "7"), ("a.b@gmail.com", "ab@gmail.com"), ("ann+x@b.org", "ann@b.org")],
    "email": [("a.b@x.org", "ab@x.org"), ("ann+x@b.org", "ann@b.org"), ("ann@b.org", "ann@c.org")],
}
SAME = {
    "canonical": [("Ann B", "annb"), ("Ａｎｎ", "ann"), ("cafe\u0301", "CAF\u00c9"), ("x\u200b", "x")],
    "email": [
        (" Ann@B.org", "ann@b.org"),
        ("A.n.n+news@GMail.com", "ann@gmail.com"),
        ("an.n@googlemail.com", "ann@gmail.com"),
    ],
}


@pytest.mark.parametrize("form", list(FORMS))
def test_what_is_one_id_and_what_stays_apart(form: str) -> None:
    for first, second in SPELLINGS[form]:
        one, two = in_form(form, [first, second], "a")
        assert one != two
    for first, second in SAME.get(form, []):
        assert in_form(form, [first], "a") == in_form(form, [second], "b")
        with pytest.raises(DataError, match=r"a: .* are one id to people; allowed: each person once"):
            in_form(form, [first, second], "a")


def test_ids_without_that_form_are_refused() -> None:
    for id in ("ann", "@b.org", "ann@", "a@b@c", "+news@gmail.com"):
        with pytest.raises(
            DataError, match="is not an address NAME@DOMAIN; allowed: ids of the form 'email', as agreed"
        ):
            in_form("email", [id], "a")
    with pytest.raises(DataError, match="a: the id ' ' has nothing that anybody sees"):
        in_form("canonical", [" "], "a")
    assert in_form("exact", [" ", "x"], "a") == [" ", "x"]
