"""The agreement: every field checked, every party's signature needed, another byte another agreement."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphveil.errors import DataError
from graphveil.federation.core.agreement import (
    FILE,
    SIGNATURES,
    Party,
    agreement_text,
    parse_agreement,
    read_agreement,
    sign,
)
from graphveil.federation.crypto.keys import new_identity
from graphveil.files.columns import Category, Column, YesNo

NAMES = ("server", "bank", "shop")
IDS = {name: new_identity(name) for name in NAMES}


def parties() -> tuple[Party, ...]:
    members = [Party("server", "server", "10.0.0.1:7700", IDS["server"].certificate.decode())]
    for number, name in enumerate(NAMES[1:], start=1):
        address, certificate = f"10.0.0.1:{7700 + number}", IDS[name].certificate.decode()
        members.append(Party(name, "holder", address, certificate, 3, number == 1))
    return tuple(members)


def text(settings: dict[str, Any] | None = None) -> str:
    chosen = {"mode": "individual", "epochs": 5, "epsilon": 8.0} if settings is None else settings
    return agreement_text("a run", parties(), ("no", "yes"), 0.0, 1.0, chosen)


def folder(path: Path, data: str | None = None, signers: tuple[str, ...] = NAMES) -> Path:
    path.mkdir(exist_ok=True)
    data = data or text()
    (path / FILE).write_text(data)
    (path / SIGNATURES).write_text(sign(data.encode(), tuple(IDS[name] for name in signers)))
    return path


def test_an_agreement_comes_back(tmp_path: Path) -> None:
    agreement = read_agreement(folder(tmp_path))
    assert agreement.parties == parties() and agreement.classes == ("no", "yes") and not agreement.directed
    assert agreement.setting.names == ("bank", "shop") and agreement.setting.label_holder == "bank"
    assert agreement.setting.privacy.epsilon == 8.0 and agreement.setting.server == "server"
    assert agreement.party("shop").columns == 3


def test_what_columns_may_hold_is_agreed_on(tmp_path: Path) -> None:
    kinds = (Column("team", Category(("red", "blue"))), Column("vip mark", YesNo()))
    server, bank, shop = parties()
    declared = agreement_text("a run", (server, bank, replace(shop, kinds=kinds)), ("no", "yes"), 0.0, 1.0, {})
    assert read_agreement(folder(tmp_path, declared)).party("shop").kinds == kinds
    with pytest.raises(DataError, match=r"columns is 4; allowed: 3, the width of its kinds"):
        parse_agreement("columns = 4".join(declared.rsplit("columns = 3", 1)).encode())
    with pytest.raises(DataError, match="'team' is declared as"):
        parse_agreement(declared.replace("{ category", "{ colour").encode())


def test_epsilon_is_of_a_publication_where_an_agreement_says_nothing_of_a_person() -> None:
    """Which of the two it is, all parties sign."""
    assert parse_agreement(text().encode()).setting.privacy.unit == "publication"
    person = text({"mode": "guesses", "epsilon": 2.0, "unit": "person"})
    assert 'unit = "person"' in person and parse_agreement(person.encode()).setting.per_person
    with pytest.raises(DataError, match="unit person in mode individual"):
        parse_agreement(person.replace('mode = "guesses"', 'mode = "individual"').encode())


def test_how_ids_are_compared_is_signed() -> None:
    """Holders with two forms have two agreements, and refuse each other's greeting."""
    assert 'ids = "exact"' in text() and parse_agreement(text().encode()).ids == "exact"
    other = parse_agreement(text().replace('"exact"', '"email"').encode())
    assert other.ids == "email" and other.hash != parse_agreement(text().encode()).hash


def test_another_byte_is_another_agreement_and_needs_new_signatures(tmp_path: Path) -> None:
    here = folder(tmp_path)
    before = read_agreement(here).hash
    (here / FILE).write_text(text() + "\n")
    assert parse_agreement((text() + "\n").encode()).hash != before
    with pytest.raises(DataError, match="the signature of server is invalid"):
        read_agreement(here)


def test_every_partys_own_signature_and_both_files_are_needed(tmp_path: Path) -> None:
    for name in NAMES:
        here = folder(tmp_path, signers=tuple(other for other in NAMES if other != name))
        with pytest.raises(DataError, match=f"{name} has not signed; graphveil federation sign"):
            read_agreement(here)
    here = folder(tmp_path)
    signed = json.loads((here / SIGNATURES).read_text())
    swapped = json.dumps(signed | {"shop": signed["bank"]})
    for content, message in (
        (swapped, "the signature of shop is invalid"),
        ("no json", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"server": 5}', "server has not signed"),
        ('{"server": "zz"}', "cannot be read"),
        ('{"server": "00"}', "is invalid"),
    ):
        (here / SIGNATURES).write_text(content)
        with pytest.raises(DataError, match=message):
            read_agreement(here)
    for file in (SIGNATURES, FILE):
        (here / file).unlink()
        with pytest.raises(DataError, match=f"{file}: is missing"):
            read_agreement(here)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "a run"', "", "name is missing"),
        ('name = "a run"', 'name = "a run"\nextra = 1', "'extra' is not known"),
        ("directed = false", 'directed = "no"', "directed is 'no'; allowed: true or false"),
        ("range = [0.0, 1.0]", "range = [1.0, 1.0]", "range is 1 to 1"),
        ('ids = "exact"', 'ids = "loose"', "ids is 'loose'; allowed: exact, canonical, email"),
        ("range = [0.0, 1.0]", "range = [0.0, inf]", "range is 0 to inf"),
        ('classes = ["no", "yes"]', 'classes = "no"', "classes is 'no'"),
        ('classes = ["no", "yes"]', 'classes = ["no", "no"]', "class names are not distinct"),
        ("epochs = 5", 'epochs = "5"', "epochs is '5'; allowed: a whole number"),
        ('role = "holder"', 'role = "guest"', "is not known"),
        ('name = "shop"', 'name = "bank"', "names another party"),
        ('name = "shop"', 'name = "../shop"', "allowed: up to 40 letters"),
        ("10.0.0.1:7702", "10.0.0.1:7701", "two parties share one address"),
        ("10.0.0.1:7702", "nowhere", "allowed: HOST:PORT"),
        ("columns = 3\n", "", "columns is missing"),
        ("columns = 3", "columns = -3", "columns is -3; allowed: a whole number of at least 1"),
        ("columns = 3", "columns = 3.0", "columns is 3.0; allowed: a whole number"),
        ("labels = true", "labels = false", "none or several holders have the labels"),
        ("BEGIN CERTIFICATE", "BEGIN NONSENSE", "is not a certificate"),
        ("[settings]", "[settings", "is not an agreement"),
    ],
)
def test_what_does_not_fit_is_named(old: str, new: str, message: str) -> None:
    assert old in text()
    with pytest.raises(DataError) as caught:
        parse_agreement(text().replace(old, new, 1).encode())
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_text_or_names_one_certificate_twice_is_refused() -> None:
    with pytest.raises(DataError, match="is not an agreement"):
        parse_agreement(b"\xff\xfe")
    twice = text({"epsilon": float("inf")}).replace(IDS["shop"].certificate.decode(), IDS["bank"].certificate.decode())
    with pytest.raises(DataError, match="names another party"):
        parse_agreement(twice.encode())
