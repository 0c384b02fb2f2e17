"""The card and the page: complete, self-contained, and safe against hostile names."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from graphveil.methods.base.network.objectives import SEVERAL_LABELS
from graphveil.reports.base.record import RunRecord
from graphveil.reports.base.templating import VENDOR
from graphveil.reports.runs import page
from tests.reports import made
from tests.reports.made import card_html, card_markdown
from tests.reports.pages import HOSTILE, read


def page_html(record: RunRecord) -> str:
    """The page of a run that nobody attacked."""
    return page.page_html(record, {})


def running(scripts: list[str]) -> list[str]:
    """The scripts of a page that are no data."""
    return [script for script in scripts if not script.startswith("{")]


def test_the_page_is_well_formed_small_and_says_what_matters() -> None:
    html = page_html(made.record())
    page, text = read(html), read(html).text
    for part in ("lpgnn on cora", "What is protected", "Not protected", "Who is connected to whom", "Ledger"):
        assert part in text
    for name in made.result().scores.controls:
        assert name in text
    assert "not private (ceiling)" in text and "The private features added nothing measurable" in text
    assert made.guarantee().sentence() in text and len(html.encode()) < 400_000
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', html))
    assert len(ids) == len(set(ids)) and used and used <= set(ids)
    # Pictures have a text for those who do not see them, and the colour of the text around them.
    pictures = [attrs for tag, attrs in page.elements if tag == "svg"]
    bars = [attrs for tag, attrs in page.elements if tag == "ul" and "aria-label" in attrs]
    assert [attrs["aria-label"] for attrs in bars] == ["Accuracy on the test nodes, per cent"]
    assert len(pictures) == 3 and {attrs["role"] for attrs in pictures} == {"img"}
    assert all(len(attrs["aria-label"] or "") > 30 for attrs in pictures)
    assert "currentColor" in html and "#000000" not in html.split("</style>", 1)[1]


@pytest.mark.parametrize("render", [page_html, card_html])
def test_the_page_needs_nothing_from_outside(render: Callable[[Any], str]) -> None:
    html = render(made.record())
    assert not re.search(r"https?:|//\w|@import|url\((?!#)", re.sub(r"(?s)<script>.*?</script>", "", html))
    elements = read(html).elements
    assert not {tag for tag, _ in elements} & {"link", "iframe", "object", "embed", "img", "base", "form"}
    assert not [attrs for _, attrs in elements if "src" in attrs]
    (policy,) = [attrs["content"] or "" for tag, attrs in elements if tag == "meta" and "http-equiv" in attrs]
    assert policy.startswith("default-src 'none'; ")
    assert set(re.findall(r"(\w+)-src", policy)) <= {"default", "style", "script"}


def test_the_policy_allows_the_scripts_of_the_page_and_no_other() -> None:
    page = read(page_html(made.record()))
    policy = str(next(attrs["content"] for tag, attrs in page.elements if "http-equiv" in attrs))
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    sums = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in running(page.scripts)]
    assert sums == allowed
    assert "'unsafe-inline'" not in policy.split("script-src")[1]
    assert "script-src" not in card_html(made.record())


def _hostile() -> dict[str, object]:
    guarantee = made.guarantee(void=HOSTILE)
    return {
        "data": HOSTILE,
        "settings": {HOSTILE: HOSTILE},
        "notes": (HOSTILE,),
        "guarantee": guarantee,
        "controls": {HOSTILE: made.interval(0.5)},
        "best_control": HOSTILE,
    }


@pytest.mark.parametrize("render", [page_html, card_html])
def test_hostile_names_stay_text_in_the_page(render: Callable[[Any], str]) -> None:
    harmless, hostile = read(render(made.record())), read(render(made.record(**_hostile())))
    tags = {tag for tag, _ in hostile.elements}
    assert tags <= {tag for tag, _ in harmless.elements} | {"strong"}
    assert running(hostile.scripts) == running(harmless.scripts)
    assert len(hostile.scripts) == len(harmless.scripts)
    assert not any(name.startswith("on") for _, attrs in hostile.elements for name in attrs)
    assert "<script>alert(1)</script>" in hostile.text
    assert "\x1b" not in render(made.record(**_hostile()))


def test_hostile_names_stay_text_in_the_card() -> None:
    card = card_markdown(made.record(**_hostile()))
    assert not re.search(r"(?<!\\)<", card)
    assert "\n# heading" not in card
    assert "\x1b" not in card
    for line in card.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (4, 6, 7), line


@pytest.mark.parametrize("render", [card_markdown, card_html, page_html])
def test_a_void_run_is_loud_and_figures_of_several_labels_are_called_f1(render: Callable[[Any], str]) -> None:
    void_page, plain = render(made.record(void="noise was reproducible (seed 3)")), render(made.record())
    assert "his run protects nobody" in void_page and "noise was reproducible (seed 3)" in void_page
    assert "protects nobody" not in plain and "Accuracy on" in plain
    several = render(made.record(notes=(SEVERAL_LABELS,)))
    assert "icro F1 on the test nodes" in several and "Accuracy on" not in several


# ---- the libraries inside the pages ----


README = VENDOR / "README.md"


def listed() -> dict[str, str]:
    """File name -> SHA-256, as the list says."""
    return dict(re.findall(r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", README.read_text(), re.MULTILINE))


def test_every_file_is_the_one_that_was_fetched() -> None:
    files = {file.name: file for file in VENDOR.iterdir() if file.suffix in (".js", ".css")}
    assert listed().keys() == files.keys()
    for name, file in files.items():
        assert hashlib.sha256(file.read_bytes()).hexdigest() == listed()[name], name


def test_every_library_comes_with_its_licence() -> None:
    licences = set(re.findall(r"`(LICENSE\.\w+)`", README.read_text()))
    assert licences == {file.name for file in VENDOR.glob("LICENSE.*")}
    for name in licences:
        assert "Permission is hereby granted, free of charge" in (VENDOR / name).read_text()


def test_no_library_ends_the_element_it_is_written_into() -> None:
    for file in VENDOR.glob("*.js"):
        text = file.read_text()
        assert not re.search(r"</script|<!--", text, re.IGNORECASE), file.name
        assert "\r" not in text, file.name
