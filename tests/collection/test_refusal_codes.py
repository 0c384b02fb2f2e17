"""Every code that a collector answers or a device refuses with is explained, and none that there is no more."""

from __future__ import annotations

import ast
import json
import re

import pytest

from graphveil.collection.service.answers import RETRY_AFTER, STATUS
from graphveil.collection.service.refusal_codes import REFUSAL_CODES
from graphveil.device.refusals import COLLECTOR, REFUSALS
from graphveil.privacy.statement.codes import Entry
from graphveil.privacy.statement.registry import CODES
from tests.pages import ROOT, page, table


def of_device() -> set[str]:
    """The codes with which the device in Python refuses: the first argument of every DeviceError."""
    codes = set()
    for file in (ROOT / "src/graphveil/device").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DeviceError":
                first = node.args[0]
                codes |= {first.value} if isinstance(first, ast.Constant) else set()
    return {str(code) for code in codes}


def documented() -> set[str]:
    """The codes of the standard's tables."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", page("refused"), re.MULTILINE)) | {"no-ed25519"}


def of_page() -> set[str]:
    """The codes that the person's page has words for, and those that its scripts refuse with."""
    scripts = [file.read_text() for file in (ROOT / "src/graphveil/collection/assets").glob("*.js")]
    raised = r'(?:new Refused\(|new DeviceError\(|(?:throw|refuse\(|, ) ?\{ code: )"([a-z0-9-]+)"'
    return set(worded()) | {code for text in scripts for code in re.findall(raised, text)}


def worded() -> dict[str, str]:
    """Code -> head and words, of the page."""
    text = (ROOT / "src/graphveil/collection/assets/refusals.js").read_text()
    texts = {name: json.loads(text) for name, text in re.findall(r'^const ([A-Z]+) =\s+("[^"]+");', text, re.M)}
    table = text.partition("export const WORDS = {")[2].partition("\n};")[0]
    wordings = {}
    for code, wording in re.findall(r'^  "?([a-z0-9-]+)"?: \[(.*?)\],?$', table, re.M | re.S):
        parts = re.findall(r'"[^"]*"|[A-Z]+', re.sub(r'"\s+\+\s+"', "", wording))
        wordings[code] = " | ".join(texts.get(part) or json.loads(part) for part in parts)
    return wordings


def test_every_code_is_explained_and_none_beside() -> None:
    assert of_device() >= {"bad-value", "cap", "epsilon", "wrong-hash"}, "the reader of sources finds nothing"
    assert of_page() >= {"bad-link", "no-crypto", "offline", "other-tab", "unconfirmed"}, "none found of the page"
    assert set(STATUS) | of_device() | documented() | of_page() == set(REFUSAL_CODES)


def test_every_code_has_words() -> None:
    collector = {code for code, status in STATUS.items() if status >= 400} - {"not-now", "no-key"}
    standard = set(re.findall(r"^\| `([a-z-]+)` \|", page("refused").split("Of our own commands")[0], re.MULTILINE))
    assert of_page() | collector | standard - {"ledger", "filling", "bad-line"} | {"no-ed25519"} == set(worded())


def test_every_answer_of_a_collector_to_a_person_has_words() -> None:
    of_organisers = {"not-admitted", "not-now", "no-key"}
    assert {code for code, status in STATUS.items() if status >= 400} - of_organisers == set(COLLECTOR)


def test_the_pages_own_codes_are_explained_as_the_page_tells_them() -> None:
    own = of_page() - set(STATUS) - set(REFUSALS)
    assert own >= {"bad-link", "no-crypto", "no-storage", "other-task", "bad-file", "other-tab", "other-person"}
    for code in own:
        entry = REFUSAL_CODES[code]
        expected = f"{entry.sentence[0].upper()}{entry.sentence[1:]} | {entry.means} {entry.limits}"
        assert worded()[code] == expected, code


def test_no_code_of_a_guarantee_is_used_again() -> None:
    assert not set(REFUSAL_CODES) & set(CODES)


@pytest.mark.parametrize("entry", REFUSAL_CODES.values(), ids=lambda entry: entry.code)
def test_what_backs_a_code_exists_and_says_it(entry: Entry) -> None:
    path, _, name = entry.backed_by.partition("::")
    path, _, anchor = path.partition("#")
    text = (ROOT / path).read_text()
    assert not name or f"def {name}(" in text
    heads = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.+)$", text, re.M)}
    assert not anchor or anchor in heads
    assert name or f"`{entry.code}`" in text, "a page that does not know the code"
    assert entry.means.endswith(".") and entry.limits


def test_the_standard_tells_of_every_answer() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page("refused"), re.MULTILINE)
    assert {code: int(status) for code, status in rows} == dict(STATUS)
    later = page("refused").rpartition("After ")[2]
    assert set(re.findall(r"`([a-z-]+)`", later)) == set(RETRY_AFTER)


# ---- the page of threats: each line names a test that is there, and every party that the design names is on it ----


LINES = table("collection-threats")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[1][:40])
def test_each_threat_has_a_test(line: list[str]) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", line[-1])
    assert len(line) == 4 and named
    for file, test in named:
        statements = ast.parse((ROOT / "tests" / file).read_text()).body
        assert test in {each.name for each in statements if isinstance(each, ast.FunctionDef)}, f"{file}::{test}"


def test_every_party_may_try_something() -> None:
    parties = {"organiser", "collector", "whoever had the export", "participant", "stranger", "network", "a crash"}
    assert {line[0] for line in LINES} == parties
