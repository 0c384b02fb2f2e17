"""Attacks on the model of a run or on a released graph, and the files of their results: ``attack-<name>.json`` and a
picture.

Only its curator can attack a released graph, since the score needs the truth. The results are computed from private
data without noise, so they go into the curator's own folder beside the public release, with a card that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from graphveil.attacks import AttackResult
from graphveil.attacks.catalogue import PUBLISHED, SHADOW, Target, attack, require_attack
from graphveil.attacks.feature_reconstruction import shows_features
from graphveil.attacks.release_edges import as_it_is, published_edges, with_public_edges
from graphveil.errors import InputError, WriteError
from graphveil.files.outputs import Output, Say, locked_folder
from graphveil.files.serial import seal
from graphveil.files.writing import new_folder, write_bytes, writing
from graphveil.graphs import Graph, Split, load_plain
from graphveil.graphs.value.splits import has_two_parts, separate_test_nodes
from graphveil.methods import load_method
from graphveil.methods.base.method import BASELINE
from graphveil.methods.baselines.network import baseline, open_reading
from graphveil.methods.registry import build_method, chosen_settings, tagged
from graphveil.methods.runs.experiment import split_of
from graphveil.privacy import Randomness
from graphveil.reports.attacks.figure import attack_figure, image_figure
from graphveil.reports.attacks.files import PLAIN, read_attacks
from graphveil.reports.base.card import pages
from graphveil.reports.base.figures import png, svg
from graphveil.reports.base.parts import OWN, public_part, write_with_mode
from graphveil.reports.base.text import plain_name
from graphveil.reports.releases.card import read_lift, release_card
from graphveil.reports.rewrite import rewrite_all
from graphveil.reports.runs.folder import read_run
from graphveil.reports.runs.origin import graph_of, in_rows_of
from graphveil.runtime.progress import Progress, ProgressCallback

T = TypeVar("T")
Results: TypeAlias = Mapping[str, AttackResult]


def attack_run(
    run: Path,
    name: str,
    *,
    randomness: Randomness,
    truth: str | None = None,
    people: Graph | None = None,
    data: str | None = None,
    data_root: Path | None = None,
    nodes: int = 500,
    shadows: int = 16,
    shadow: str | None = None,
    seed: int = 0,
    plain: bool = True,
    progress: ProgressCallback = lambda event: None,
) -> dict[str, AttackResult]:
    """Return the results of an attack on the run and on a plain network of the same graph.

    Args:
        name: one of `attacks.catalogue.ATTACKS`.
        randomness: of shadow models and of reports for the attack.
        truth: the original graph of the release or simulated collection that the run was trained on, if it was.
        people: for a run on a collection: the graph of its people from the export.
        data: the run's graph, if it has moved.
        nodes, shadows: as of `Target`.
        shadow: the adversary's own data, for training the same method and learning from it (link-stealing-shadow).
        plain: whether a plain network is attacked too; an attack that fails there proves nothing.
        progress: called for each stage and each training.

    Raises:
        ModelFileError: there is no run; InputError for an unknown attack, or one that does not fit the method.
    """
    require_attack(name)
    if (shadow is None) == (name == SHADOW):
        problem = "has to be named" if shadow is None else f"is for the attack {SHADOW}"
        raise InputError(f"a graph of the adversary's own {problem}", where="--shadow")
    record, method = read_run(run), load_method(public_part(run))
    split_seed = int(record.options.get("seed", 0))
    kind = str(record.options.get("split", "random"))
    original = None if truth is None else load_plain(truth, root=data_root)
    if original is not None and people is not None:
        served = graph = in_rows_of(people, original)
        # Who trains was drawn among those who sent a label.
        split = split_of(people, kind, split_seed)
    else:
        served = graph_of(record, data=data, root=data_root)
        split = split_of(served, kind, split_seed)
        served = separate_test_nodes(served, split) if has_two_parts(kind) else served
        graph = served if original is None else with_public_edges(original, served)

    settings = chosen_settings(record.method, record.settings)
    shadow_graph = None if shadow is None else load_plain(shadow, root=data_root)

    trained = 0

    def count_training(part: str) -> None:
        nonlocal trained
        trained += 1
        progress(Progress(trained, 0, f"training number {trained} of {part}"))

    def train(graph: Graph, nodes: Split, number: int) -> Any:
        count_training(f"{record.method}, for {name}")
        untrained = build_method(record.method, settings, len(graph.schema.classes), seed=number)
        return untrained.fit(graph, split=nodes, randomness=randomness)

    common: dict[str, Any] = {
        "nodes": nodes,
        "shadows": shadows,
        "seed": seed,
        "randomness": randomness,
        "shadow": shadow_graph,
    }
    progress(Progress(0, 0, f"{name} on {record.method}"))
    results = {record.method: attack(name, Target(method, graph, served, split, train, **common))}
    protected = record.method not in tagged(BASELINE) or truth is not None
    if not protected:
        results[record.method] = _with_reading_note(results[record.method], graph, record.method)
    if plain and protected and not name.startswith(("averaging", PUBLISHED)):
        model: dict[str, Any] = {"model": str(record.settings.get("model", "gcn")), "epochs": 200}

        def open_network(graph: Graph, nodes: Split, number: int) -> Any:
            count_training("a plain network")
            return baseline(**model, seed=number).fit(graph, split=nodes, randomness=randomness)

        common["noiseless"] = shows_features(method, served)
        plain_network = open_network(graph, split, split_seed)
        progress(Progress(0, 0, f"{name} on a plain network"))
        results[PLAIN] = attack(name, Target(plain_network, graph, graph, split, open_network, **common))
        results[PLAIN] = _with_reading_note(results[PLAIN], graph, model["model"])
    return results


def _with_reading_note(result: AttackResult, graph: Graph, model: str) -> AttackResult:
    return replace(result, notes=(*result.notes, open_reading(graph.schema, model)))


def save_results(results: Results, run: Path, name: str, *, say: Say = lambda line: None) -> tuple[Path, ...]:
    """Write results into the run folder, or beside it, and rewrite the cards; return the JSON file, PNG and SVG.

    Args:
        results: attacked -> result.
        run: folder of a run or a federation.
        name: of the attack and its files.
        say: called with one line if files went beside the folder.
    """

    def write() -> tuple[Path, ...]:
        files = _write_results(results, run, name)
        rewrite_all(run)
        return files

    # Locked: of two attacks at once, each would leave the other out of the cards.
    with locked_folder(run, say):
        return _or_beside(write, results, run, name, say)


def _or_beside(write: Callable[[], T], results: Results, folder: Path, name: str, say: Say) -> T | tuple[Path, ...]:
    """Return `write()`; where the disk refuses, write the results into a new folder beside `folder` and return those.

    Args:
        write: writes the results into `folder`.
    """
    try:
        return write()
    except WriteError as error:
        path = folder.absolute()

        def make(target: Path) -> tuple[Path, ...]:
            with new_folder(target, owner_only=True) as beside:
                files = _write_results(results, beside, name)
            return tuple(target / file.name for file in files)

        with ExitStack() as stack:
            output = Output(path.with_name(f"{path.name}.attack-{plain_name(name)}"), say, stack)
            return output.write_beside(error, make)


def _write_results(results: Results, folder: Path, name: str) -> tuple[Path, ...]:
    stem = f"attack-{plain_name(name)}"
    figure = attack_figure(results)
    files = (folder / f"{stem}.json", folder / f"{stem}.png", folder / f"{stem}.svg")
    # Readable by its owner only: results are computed from true data and not covered by epsilon.
    write_with_mode(files[0], seal({label: result.to_dict() for label, result in results.items()}))
    write_bytes(files[1], png(figure), mode=OWN)
    write_with_mode(files[2], svg(figure))
    images = image_figure(results)
    if images is not None:
        write_bytes(folder / f"{stem}-images.png", png(images), mode=OWN)
        write_with_mode(folder / f"{stem}-images.svg", svg(images))
    return files


CURATOR_ENDING = ".curator"
_OTHER_FILES = ("graph.toml", "release.json", "result.json", "agreement.toml")


def attack_release(
    release: Path,
    name: str,
    *,
    truth: str | None,
    data_root: Path | None = None,
    nodes: int = 500,
    seed: int = 0,
    plain: bool = True,
    progress: ProgressCallback = lambda event: None,
) -> dict[str, AttackResult]:
    """Return the results of an attack on a release and on the truth published without noise.

    Args:
        truth: the original graph of the release.
        nodes: the number of random nodes among which pairs are judged.
        plain: whether the truth is attacked too.

    Raises:
        InputError: the attack does not fit, or there is no truth; DataError: the release is incomplete or was changed.
    """
    if name != PUBLISHED:
        remedy = f"graphveil train gcn {release.name}, then attack that run with --truth DATA"
        raise InputError(f"{name} attacks a model, but this is a graph", allowed=PUBLISHED, remedy=remedy)
    if truth is None:
        raise InputError("is required", where="--truth", allowed="the original graph of the release")
    progress(Progress(0, 2, "reading the release and the truth"))
    released, graph = load_plain(release), load_plain(truth, root=data_root)
    progress(Progress(1, 2, f"{name} on the release"))
    results = {released.release.method: published_edges(graph, released, targets=nodes, seed=seed)}
    if plain:
        results[PLAIN] = published_edges(graph, as_it_is(graph, released), targets=nodes, seed=seed)
    return results


def curator_folder(release: Path, out: Path | None) -> Path:
    """Return the curator's own folder for a release; InputError where it is inside the release, or used otherwise.

    Args:
        out: the requested folder; None: beside the release, with its name and CURATOR_ENDING.
    """
    named = release if release.name not in ("", "..") else release.resolve()
    folder = named.with_name(named.name + CURATOR_ENDING) if out is None else out
    # Links resolved: a link may lead into the release.
    if release.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise InputError(
            f"{folder} is inside the release, which is public", where="--out", remedy="name another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder", where="--out")
    if any((folder / name).exists() for name in _OTHER_FILES):
        raise InputError(f"{folder} holds other files", where="--out", remedy="name a new folder")
    return folder


def save_for_curator(
    results: Mapping[str, AttackResult], release: Path, folder: Path, name: str, *, say: Say = lambda line: None
) -> tuple[Path, ...]:
    """Write results and the curator's card into the curator's folder, or beside it; return the files of the attack.

    Args:
        results: attacked -> result; computed from private data without noise.
        release: the published folder, which is only read.
        folder: the curator's own; created if it does not exist.
        name: of the attack and its files.
        say: called with one line if files went beside the folder.
    """

    def write() -> tuple[Path, ...]:
        with writing(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked_folder(folder, say):
            files = _write_results(results, folder, name)
            card = release_card(load_plain(release), release, lift=read_lift(release), attacks=read_attacks(folder))
            for file, content in pages(card).items():
                write_with_mode(folder / file, content)
        return files

    return _or_beside(write, results, folder, name, say)
