"""Make the example folder: a town of made people. Run it anywhere; it writes beside itself.

    python docs/examples/town/make.py

3,000 people answer a short form (columns of several kinds, public here), 2,400 of them are in a club whose list of
members hangs at its door (the class, public; 600 have not said which is theirs), and they call one another (the edges,
private: a telephone company knows them). Nothing here was measured on anybody.

    form     drawn from tables of shares that are written below, job by age and hobbies by one taste a person
    class    a club draws people by age, by a hobby, and by chance: the form alone says the club of about half
    edges    a call starts at a person by activity (gamma, shape 2, so that degrees differ) and goes, by the shares in
             CALLS, to somebody of the same club, of the same district, of about the same age, or to anybody

The constants are guesses at an ordinary town, set before any method was run on it. What edges say of classes is decided
by the share of calls inside a club; your own graph may have more of it or none.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

PEOPLE, CALLS_A_PERSON, SILENT = 3_000, 6, 0.2
CLUBS = ("sports", "choir", "gardens", "fire brigade", "chess")
DISTRICTS = {"old town": 0.2, "harbour": 0.15, "north": 0.25, "south": 0.25, "hills": 0.15}
JOBS = ("school", "crafts", "office", "care", "retired")
DEGREES = {"none": 0.15, "school": 0.3, "apprenticeship": 0.35, "university": 0.2}
HOBBIES = ("football", "running", "music", "books", "plants", "cooking", "games", "engines")
#: Where a call goes.
CALLS = {"club": 0.45, "district": 0.2, "age": 0.15, "anybody": 0.2}
#: The age about which a club's members lie, how far they spread, its hobbies, and how many it draws.
DRAW = {
    "sports": (28, 14, ("football", "running"), 0.6),
    "choir": (52, 18, ("music", "books"), 0.0),
    "gardens": (60, 15, ("plants", "cooking"), 0.0),
    "fire brigade": (35, 12, ("engines", "running"), 0.2),
    "chess": (42, 22, ("games", "books"), -0.3),
}
#: How much a hobby of the club counts beside the age, and how much chance does (a Gumbel draw: a logit model).
HOBBY, CHANCE = 0.9, 1.0
HERE = Path(__file__).parent


def answers(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What everybody fills in: age, district, job, degree, children, car, and up to three hobbies [n, hobbies]."""
    age = np.clip(np.where(rng.random(PEOPLE) < 0.7, rng.normal(42, 16, PEOPLE), rng.normal(68, 9, PEOPLE)), 14, 95)
    age = age.round().astype(int)
    job = np.array(JOBS)[rng.choice([1, 2, 3], PEOPLE, p=[0.35, 0.4, 0.25])]
    job[age < 18], job[age > 66] = "school", "retired"
    taste = rng.gamma(1.0, size=(PEOPLE, len(HOBBIES)))
    hobbies = np.argsort(np.argsort(-taste, axis=1), axis=1) < rng.integers(0, 4, PEOPLE)[:, None]
    return {
        "age": age,
        "district": rng.choice(list(DISTRICTS), PEOPLE, p=list(DISTRICTS.values())),
        "job": job,
        "degree": rng.choice(list(DEGREES), PEOPLE, p=list(DEGREES.values())),
        "children": np.where(age < 22, 0, np.minimum(rng.poisson(1.3, PEOPLE), 8)),
        "car": rng.random(PEOPLE) < np.where(age < 18, 0.0, 0.65),
        "hobbies": hobbies,
    }


def clubs(rng: np.random.Generator, form: dict[str, np.ndarray]) -> np.ndarray:
    """Everybody's club [n], as a number."""
    pull = np.zeros((PEOPLE, len(CLUBS)))
    for place, club in enumerate(CLUBS):
        about, spread, liked, size = DRAW[club]
        liked_hobbies = form["hobbies"][:, [HOBBIES.index(hobby) for hobby in liked]].sum(axis=1)
        pull[:, place] = size + HOBBY * liked_hobbies - 0.5 * ((form["age"] - about) / spread) ** 2
    return np.argmax(pull + CHANCE * rng.gumbel(size=pull.shape), axis=1)


def calls(rng: np.random.Generator, form: dict[str, np.ndarray], club: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of people who call each other, each once, the lower number first."""
    activity = rng.gamma(2.0, size=PEOPLE)
    near = {"club": club, "district": form["district"], "age": form["age"] // 5, "anybody": np.zeros(PEOPLE, int)}
    pairs = set()
    for caller in rng.choice(PEOPLE, PEOPLE * CALLS_A_PERSON, p=activity / activity.sum()):
        group = near[rng.choice(list(CALLS), p=list(CALLS.values()))]
        alike = np.flatnonzero(group == group[caller])
        called = int(rng.choice(alike, p=activity[alike] / activity[alike].sum()))
        pairs |= {(min(int(caller), called), max(int(caller), called))} - {(called, called)}
    return sorted(pairs)


def rows_of(rng: np.random.Generator, form: dict[str, np.ndarray], club: np.ndarray) -> list[list[object]]:
    """Rows of the nodes file; the club of a fifth is left empty."""
    silent = rng.random(PEOPLE) < SILENT
    rows: list[list[object]] = []
    for person in range(PEOPLE):
        cells = [form[key][person] for key in ("age", "district", "job", "degree", "children")]
        hobbies = ";".join(np.array(HOBBIES)[form["hobbies"][person]])
        car = "yes" if form["car"][person] else "no"
        rows.append([f"p{person:04}", *cells, car, hobbies, "" if silent[person] else CLUBS[club[person]]])
    return rows


def write(file: Path, header: tuple[str, ...], rows: list) -> None:
    """One csv file."""
    with file.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerows([header, *rows])


if __name__ == "__main__":
    generator = np.random.default_rng(2026)
    filled = answers(generator)
    member = clubs(generator, filled)
    header = ("person", "age", "district", "job", "degree", "children", "car", "hobbies", "club")
    write(HERE / "nodes.csv", header, rows_of(generator, filled, member))
    edges = [(f"p{low:04}", f"p{high:04}") for low, high in calls(generator, filled, member)]
    write(HERE / "edges.csv", ("source", "target"), edges)
