"""Reports in a real browser: both widths and schemes, paper, keyboard, contrast, and nothing that leaves the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphveil.federation.core.setting import Member, Setting
from graphveil.reports.base.card import Card, pages, picture_section
from graphveil.reports.compare.folder import page_html as comparison_html
from graphveil.reports.federation.parties import federation_parties
from graphveil.reports.runs.against import Side, against_html
from graphveil.reports.runs.card import About
from graphveil.reports.runs.page import page_html, shared_html
from tests.reports import made
from tests.reports.browser import Browser
from tests.reports.compare.test_page import side_by_side

pytestmark = pytest.mark.slow
LONG = "a-control-with-a-very-long-name-without-any-blank-in-it-at-all-" * 2
CONTROLS = "a[href], button, input, select, summary, [tabindex]"
TABS = ["Overview", "Privacy", "Accuracy", "Graph", "Attacks", "Ledger"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages with a name or settings that fit no column.

    The maker's report of a run with rivals, attacks and a picture; what is handed on of one; two runs under guarantees
    with other units, one of them attacked; and a comparison.
    """
    rich = made.beside_rivals()
    record = made.record(**{**rich, "controls": {**rich["controls"], LONG: made.interval(0.3)}})
    other = made.record(**{**rich, "settings": {"model": LONG, "epsilon_a": 4.0}})
    texts = {
        "page": page_html(record, made.attacks(), made.picture()),
        "shared": shared_html(About.of(made.record()), made.picture(own=False)),
        "against": against_html(Side("mine", made.record(), {}), Side(LONG, other, made.attacks())),
        "comparison": comparison_html(side_by_side()),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


#: Page -> its tabs, and how many charts are drawn in one of them.
PAGES = {
    "page": (TABS, "#accuracy", 2),
    "shared": (None, "#accuracy", 0),
    "against": (["Overview", "Training", "Privacy", "Attacks"], "#training", 2),
    "comparison": (["Figures", "Promises", "Comparable"], "#figures", 1),
}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_every_tab_fits_and_can_be_read(
    browser: Browser, files: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    tabs, place, charts = PAGES[name]
    browser.complaints()
    browser.show(files[name], width=width, scheme=scheme)
    assert tabs is None or browser.tabs() == tabs
    for tab in browser.tabs():
        browser.open_tab(tab)
        assert browser.overflow() <= 0, tab
        assert browser.faults() == [], tab
    assert browser.complaints() == []
    assert browser.ask(f"return document.querySelectorAll('{place} .chart canvas').length") == charts


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_trust_fits_and_can_be_read(browser: Browser, tmp_path: Path, scheme: str) -> None:
    setting = Setting.of((Member("clinic", 40, labels=True), Member("bank", 60)), 3, mode="shared-linear", epsilon=8.0)
    picture = federation_parties(setting)
    file = tmp_path / "card.html"
    file.write_text(pages(Card("Who sees what", "", (picture_section(picture),), {}))["card.html"])
    for width in (320, 1280):
        browser.show(file, width=width, scheme=scheme)
        browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert browser.overflow() <= 0 and browser.faults() == []
        wide = "return [...document.querySelectorAll('svg text')].filter(t => t.getBBox().x + t.getBBox().width > 318)"
        assert browser.ask(f"{wide}.map(t => t.textContent)") == []
    # Colours are attributes that name the page's variables, so that a policy against styles leaves them.
    assert browser.ask("return getComputedStyle(document.querySelector('svg text')).fill") != "rgb(0, 0, 0)"


def test_the_checks_find_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text(
        '<!doctype html><html lang="en"><title>bad</title><p style="color:#aaa;background:#fff;width:3000px">pale</p>'
        '<img alt="" src="https://example.invalid/x.png"><script>console.error("loud")</script></html>'
    )
    browser.complaints()
    browser.requests()
    browser.show(file)
    assert [fault.partition(":")[0] for fault in browser.faults()] == ["color-contrast"]
    assert browser.overflow() > 0
    assert any("loud" in line for line in browser.complaints())
    assert "https://example.invalid/x.png" in browser.requests()


def test_nothing_leaves_the_page_and_nothing_complains(browser: Browser, files: dict[str, Path]) -> None:
    page, shared = files["page"], files["shared"]
    browser.complaints()
    browser.requests()
    for file in (page, shared):
        browser.show(file)
        for tab in browser.tabs():
            browser.open_tab(tab)
        browser.ask("document.body.append(Object.assign(new Image(), {src: 'https://example.invalid/leak.png'}))")
    assert {url for url in browser.requests() if not url.startswith("data:")} == {page.as_uri(), shared.as_uri()}
    blocked = browser.complaints()
    assert len(blocked) == 2
    assert all("Content Security Policy" in line for line in blocked)


def test_the_keyboard_reaches_every_control(browser: Browser, files: dict[str, Path]) -> None:
    visible = "(e => e.tabIndex >= 0 && e.checkVisibility() && e.getClientRects().length)"
    browser.show(files["page"])
    for number in range(len(TABS)):
        wanted = browser.ask(
            "window.met = new Set(); document.addEventListener('focusin', e => window.met.add(e.target)); return "
            f"[...document.querySelectorAll('{CONTROLS}')].filter({visible}).length"
        )
        browser.ask("document.activeElement.blur(); getSelection().removeAllRanges(); document.body.focus()")
        for _ in range(wanted + 2):
            browser.press("\ue004")
        missed = browser.ask(
            f"return [...document.querySelectorAll('{CONTROLS}')]"
            f".filter({visible}).filter(e => !window.met.has(e)).map(e => e.outerHTML.slice(0, 100))"
        )
        assert missed == [], TABS[number]
        browser.ask("document.querySelector('[role=tab][aria-selected=true]').focus()")
        browser.press("\ue014")
        assert browser.ask("return document.activeElement.textContent") == TABS[(number + 1) % len(TABS)]


def test_paper_and_readers_without_scripts_get_everything(browser: Browser, files: dict[str, Path]) -> None:
    page = files["page"]
    visible = (
        "return [...document.querySelectorAll('section')].map(s => [s.id, s.checkVisibility(), "
        "[...s.querySelectorAll('.still')].every(p => p.checkVisibility() && p.getBoundingClientRect().height > 50), "
        "[...s.querySelectorAll('.live, .tools, .tabs')].some(p => p.checkVisibility())])"
    )
    whole = [[tab.lower(), True, True, False] for tab in TABS]
    browser.show(page, media="print")
    for tab in TABS:
        browser.open_tab(tab)
    assert browser.ask(visible) == whole
    assert browser.ask("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for width in (1280, 390):
        browser.show(page, width=width, script=False)
        assert browser.ask(visible) == whole
        assert browser.overflow() <= 0
    browser.show(page)
