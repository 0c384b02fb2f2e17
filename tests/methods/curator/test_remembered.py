"""The noise of plans, remembered on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphveil.errors import NoiseError
from graphveil.methods.curator.plan import cached_noise
from graphveil.methods.curator.privacy import Noise
from graphveil.privacy import ChangedSamples

NOISE = Noise((1 / 3, 2.5), {"training": 0.1}, 3.9995, 1e-5, ChangedSamples(steps=3, rate=0.25, samples=2), 7.0, 1.5)


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a noise was searched, one number each, where nothing is remembered yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return []


def plan(searched: list[int], facts: object = ("dp-mlp", 4.0), *, noise: Noise = NOISE, epsilon: float = 4.0) -> Noise:
    def search() -> Noise:
        searched.append(1)
        return noise

    return cached_noise(facts, epsilon, search)


def only(folder: Path) -> Path:
    (file,) = (folder / "graphveil" / "plans").iterdir()
    return file


def test_the_same_facts_are_searched_once_and_others_by_themselves(searched: list[int], tmp_path: Path) -> None:
    assert plan(searched) == NOISE and only(tmp_path).stat().st_size < 1000
    assert plan(searched) == NOISE and len(searched) == 1
    other = replace(NOISE, sigmas=(9.0,))
    assert plan(searched, ("dp-mlp", 4.000000000000001), noise=other) == other and len(searched) == 2
    texts = [file.read_text() for file in (tmp_path / "graphveil" / "plans").iterdir()]
    assert "dp-mlp" not in "".join(texts), "facts stand in digests alone"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("2.5", "0.5"),  # less noise than was searched
        lambda text: text.replace("3.9995", "0.1"),
        lambda text: text[:-20],
        lambda _: "",
        lambda _: "[]",
        lambda _: "[" * 10_000,
        lambda text: json.dumps({**json.loads(text), "digest": 3}),
        lambda text: " " * (1 << 17) + text,
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_searched_again(
    searched: list[int], tmp_path: Path, damage: object
) -> None:
    plan(searched)
    file = only(tmp_path)
    file.write_text(damage(file.read_text()))  # type: ignore[operator]
    assert plan(searched) == NOISE and len(searched) == 2
    assert plan(searched) == NOISE and len(searched) == 2, "written over"


def test_noise_that_costs_more_than_it_may_is_not_believed(searched: list[int]) -> None:
    plan(searched)
    dearer = replace(NOISE, epsilon=1.0)
    assert plan(searched, noise=dearer, epsilon=2.0) == dearer


def test_a_new_version_and_a_changed_source_search_again(searched: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    plan(searched)
    monkeypatch.setattr("graphveil.methods.curator.plan.version", lambda name: f"next {name}")
    plan(searched)
    assert len(searched) == 2


def test_a_refusal_is_not_remembered_and_a_full_disk_is_no_error(
    searched: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Noise:
        raise NoiseError("too little")

    with pytest.raises(NoiseError):
        cached_noise("facts", 1.0, refuse)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert plan(searched) == NOISE


def test_only_plans_read_it() -> None:
    room = Path(cached_noise.__code__.co_filename).parents[2]
    users = [file.name for file in room.rglob("*.py") if "cached_noise(" in file.read_text()]
    assert users == ["plan.py"], "a training searches its noise itself"
