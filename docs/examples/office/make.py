"""Make the example folder: a small office of made people. Run it anywhere; it writes beside itself.

    python docs/examples/office/make.py

Three teams; colleagues of one team meet more often. Each person keeps the hours spent in six kinds of work (private)
and the team (private). Who met whom is the public graph. Nothing here was measured on anybody.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

TEAMS = {"design": (2, 1, 1, 14, 6, 4), "sales": (12, 10, 6, 1, 2, 3), "support": (4, 14, 2, 2, 5, 6)}
WORK = ("calls", "mail", "travel", "drawing", "writing", "training")
PER_TEAM, HOURS = 20, 40.0
NAMES = "Ada Ben Cleo Dan Eva Finn Gia Hal Ida Jon Kim Leo Mia Ned Oda Pia Quin Ria Sam Tim"
HERE = Path(__file__).parent


def people(rng: np.random.Generator) -> list[list[object]]:
    """Rows of the nodes file: id, hours of each kind of work, team (left empty for every tenth person)."""
    rows: list[list[object]] = []
    for number, (team, means) in enumerate(TEAMS.items()):
        for name in NAMES.split():
            hours = np.clip(rng.gamma(4.0, np.array(means) / 4.0), 0, HOURS).round(1)
            unknown = len(rows) % 10 == 9
            rows.append([f"{name}-{number + 1}", *hours, "" if unknown else team])
    return rows


def meetings(rng: np.random.Generator, rows: list[list[object]]) -> list[tuple[object, object]]:
    """Rows of the edges file: each person meets four colleagues of the team and one of another."""
    team = np.repeat(np.arange(len(TEAMS)), PER_TEAM)
    pairs = set()
    for person in range(len(rows)):
        own = [other for other in np.flatnonzero(team == team[person]) if other != person]
        met = [*rng.choice(own, 4, replace=False), rng.choice(np.flatnonzero(team != team[person]))]
        pairs |= {(min(person, int(other)), max(person, int(other))) for other in met}
    return [(rows[low][0], rows[high][0]) for low, high in sorted(pairs)]


def write(file: Path, header: tuple[str, ...], rows: list) -> None:
    """One csv file."""
    with file.open("w", encoding="utf-8", newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerows([header, *rows])


if __name__ == "__main__":
    generator = np.random.default_rng(7)
    persons = people(generator)
    write(HERE / "nodes.csv", ("person", *WORK, "team"), persons)
    write(HERE / "edges.csv", ("source", "target"), meetings(generator, persons))
