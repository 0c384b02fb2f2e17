"""Attack a released graph, which its curator alone can do: the truth scores it.

What is found is computed from private data without noise. It never goes into the release, which is public, but into a
folder of the curator's beside it, with a card that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphveil.attacks import AttackResult
from graphveil.attacks.catalogue import PUBLISHED
from graphveil.attacks.release_edges import as_it_is, published_edges
from graphveil.errors import InputError
from graphveil.files.outputs import Say, locked_folder
from graphveil.files.writing import writing
from graphveil.graphs import load_plain
from graphveil.reports.attacks.files import PLAIN, read_attacks
from graphveil.reports.attacks.run import or_beside, write_found
from graphveil.reports.base.card import write_card
from graphveil.reports.releases.card import release_card
from graphveil.reports.releases.lift import read_lift

ENDING = ".curator"
_OTHERS = ("graph.toml", "release.json", "result.json", "agreement.toml")


def attack_release(
    release: Path,
    name: str,
    *,
    truth: str | None,
    data_root: Path | None = None,
    nodes: int = 500,
    seed: int = 0,
    plain: bool = True,
) -> dict[str, AttackResult]:
    """Return what an attack finds in a release and, beside it, in the truth published as it is. Raises InputError for
    an attack that does not fit or no truth; DataError if the release is incomplete or was changed.

    Args:
        truth: the graph that the release was made of. nodes: among how many random nodes pairs are judged.
    """
    if name != PUBLISHED:
        remedy = f"graphveil train gcn {release.name}, then attack that run with --truth DATA"
        raise InputError(f"{name} attacks a model, but this is a graph", allowed=PUBLISHED, remedy=remedy)
    if truth is None:
        raise InputError("is required", where="--truth", allowed="the original graph of the release")
    released, graph = load_plain(release), load_plain(truth, root=data_root)
    results = {released.release.method: published_edges(graph, released, targets=nodes, seed=seed)}
    if plain:
        results[PLAIN] = published_edges(graph, as_it_is(graph, released), targets=nodes, seed=seed)
    return results


def curator_folder(release: Path, out: Path | None) -> Path:
    """Return where the curator keeps what no one else may see. Raises InputError if inside the release, or used
    otherwise.

    Args:
        out: as asked for; None: beside the release, its name and ENDING.
    """
    beside = release if release.name not in ("", "..") else release.resolve()
    folder = beside.with_name(beside.name + ENDING) if out is None else out
    # Links resolved: a folder that only looks as if it were elsewhere is published all the same.
    if release.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise InputError(
            f"{folder} is inside the release, which is public", where="--out", remedy="name another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder", where="--out")
    if any((folder / name).exists() for name in _OTHERS):
        raise InputError(f"{folder} holds other files", where="--out", remedy="name a new folder")
    return folder


def keep_for_curator(
    results: Mapping[str, AttackResult], release: Path, folder: Path, name: str, *, say: Say = lambda line: None
) -> tuple[Path, ...]:
    """Write what was found, and the curator's card, into the curator's folder, or beside it; return the files of the
    attack.

    Args:
        results: attacked -> result; computed from private data without noise.
        release: the published folder, which is only read. folder: the curator's own; created where it is missing.
        name: of the attack, which names its files. say: hears in one line of files that went beside the folder.
    """

    def write() -> tuple[Path, ...]:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with locked_folder(folder, say):
            files = write_found(results, folder, name)
            card = release_card(load_plain(release), release, lift=read_lift(release), attacks=read_attacks(folder))
            write_card(card, folder)
        return files

    return or_beside(write, results, folder, name, say)
