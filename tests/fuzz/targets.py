"""What is fuzzed: folders that commands read, each with the commands, and what an accepted input must mean."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.cli import main
from graphveil.files.serial import seal
from tests.fuzz.mutate import NUMBERS, WORDS, mutate
from tests.fuzz.published import published_targets
from tests.fuzz.stored import model_targets, stored_targets
from tests.fuzz.target import Target, Words

if TYPE_CHECKING:
    from graphveil.graphs import Graph

TOML = """private = ["features", "labels"]
range = [0, 1]
classes = ["a", "b"]
directed = false
name = "people"
split = "part"
"""


def people(folder: Path, *, sparse: bool = False, parquet: bool = False, private_edges: bool = False) -> Path:
    """A folder of twenty people; everybody knows their edges, or every second one."""
    folder.mkdir(parents=True)
    more = 'public_edges = "public"\n' if private_edges else ""
    more += "dimension = 4\n" if sparse else 'features = ["x", "y"]\nlabel = "label"\n'
    (folder / "graph.toml").write_text(TOML + more)
    parts = ("train", "train", "val", "test")
    lines = [f"p{n},{n % 3 / 2},{n % 5 / 4},{'ab'[n % 2]},{parts[n % 4]}" for n in range(20)]
    head = "id,x,y,label,part"
    if sparse:
        head, lines = "id,label,part", [",".join((line.split(",")[0], *line.split(",")[3:])) for line in lines]
        entries = [f"p{n},{(n * 3) % 4},{n % 4 / 3}" for n in range(20)]
        (folder / "features.csv").write_text("\n".join(["id,feature,value", *entries]) + "\n")
    (folder / "nodes.csv").write_text("\n".join([head, *lines]) + "\n")
    head, ends = "source,target", [f"p{n},p{(n + 1) % 20}" for n in range(20)]
    if private_edges:
        head, ends = f"{head},public", [f"{end},{'true' if n % 2 else 'false'}" for n, end in enumerate(ends)]
    (folder / "edges.csv").write_text("\n".join([head, *ends]) + "\n")
    if parquet:
        import polars

        for stem in ("nodes", "edges"):
            polars.read_csv(folder / f"{stem}.csv").write_parquet(folder / f"{stem}.parquet")
            (folder / f"{stem}.csv").unlink()
    return folder


def same_after_rewriting(copy: Path) -> None:
    """An accepted folder, written anew and read again, is the same graph."""
    import torch

    from graphveil.graphs import load_graph, validate, write_folder

    graph = validate(load_graph(copy))
    again = load_graph(write_folder(graph, copy.with_name("again"), format="csv"))
    shutil.rmtree(copy.with_name("again"))
    assert _ids(again) == _ids(graph), "other ids"
    for part in ("edge_index", "y", "train_mask", "public_edges"):
        assert _same(graph.get(part), again.get(part)), f"another {part}"
    assert torch.equal(_dense(graph.x), _dense(again.x)), "other features"
    assert (again.schema.low, again.schema.high) == (graph.schema.low, graph.schema.high), "another range"
    assert again.schema.classes == graph.schema.classes, "other classes"


def _same(first: object, other: object) -> bool:
    import torch

    if isinstance(first, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(first, other)
    return first is None and other is None


def _ids(graph: Graph) -> list[str]:
    ids = graph.get("ids")
    assert ids is not None
    return [str(node) for node in ids]


def _dense(x: Any) -> Any:
    return x.to_dense()


def run_of(method: str, data: Path, out: Path, *more: object) -> Path:
    """A short real run."""
    words = ["train", method, data, "--no-controls", "--threads", 1, "--out", out, *more]
    assert main([str(word) for word in words]) == 0
    return out


def bare_model(run: Path, out: Path) -> Path:
    """The model of a run and its ledger alone, which no digests vouch for."""
    out.mkdir()
    for name in ("model.safetensors", "ledger.json"):
        shutil.copy(run / name, out / name)  # follows links
    return out


def resealed(content: bytes, name: str, rng: random.Random) -> bytes:
    """A model file whose facts are changed and whose hash is made to fit: what an attacker would hand in."""
    from graphveil.methods.base.storage import KEY, content_hash

    if rng.random() < 0.3:
        return mutate(content, name, rng)
    from safetensors.torch import load, save

    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][KEY])
    tensors = dict(load(content))
    if rng.random() < 0.3 and tensors:
        changed = rng.choice(sorted(tensors))
        tensors[changed] = _other_tensor(tensors[changed], rng)
    facts = json.dumps(header["facts"]).encode()
    for _ in range(20):
        try:
            header["facts"] = json.loads(mutate(facts, "facts.json", rng))
            assert isinstance(header["facts"], dict)
            header["sha256"] = content_hash(header["kind"], header["facts"], tensors)
            return bytes(save(tensors, metadata={KEY: json.dumps(header)}))
        except (ValueError, AssertionError, RecursionError):
            continue
    return content


def _other_tensor(tensor: Any, rng: random.Random) -> Any:
    import torch

    makers: tuple[Callable[[], Any], ...] = (
        lambda: tensor.flatten()[:0].clone(),
        lambda: tensor.reshape(1, -1).clone(),
        lambda: tensor.to(torch.int64),
        lambda: tensor.to(torch.float64),
        lambda: torch.full_like(tensor, -1),
        lambda: torch.full(tuple(tensor.shape), float("nan")),
        lambda: torch.zeros(3, 5),
    )
    return rng.choice(makers)()


def numbers(folder: Path, rng: random.Random) -> list[Words]:
    """Commands with one strange number or word each; none of them trains."""
    from graphveil.methods import METHODS

    odd: Any = rng.choice((rng.choice(NUMBERS), rng.choice(WORDS))).replace("\x00", "")
    method = rng.choice(sorted(METHODS))
    key = rng.choice(sorted(METHODS[method].options))
    flags = ("--epsilon-x", "--epsilon-y", "--epsilon-a", "--epsilon", "--delta", "--unit", "--model", "--epochs")
    flag = rng.choice(flags)
    compared = ("mechanisms", "compare", "--dimension=2", "--users=10", "--out", folder / "m")
    second, classes, price = "--holder=b=h:2=2", "--classes=x,y", "--epsilon=8"
    agreed = ("federation", "init", "-o", folder / "f", "--holder=a=h:1=1", second)
    released = rng.choice(("edge-rand", "lap-graph", "feature-rr"))
    return [
        ("plan", method, folder, "--set", f"{key}={odd}"),
        ("plan", method, folder, f"{flag}={odd}"),
        ("plan", method, folder, f"--private-share={odd}", "--seed=1"),
        ("plan", method, odd),
        ("data", "describe", odd or "x"),
        (*compared, f"--epsilon={odd}"),
        ("federation", "split", folder, f"--proportion={odd}", "--out", folder / "s"),
        ("federation", "key", odd, "--out", folder / "k"),
        (*agreed[:4], f"--holder=a=h:1={odd}", second, classes, price),
        (*agreed[:4], f"--holder={odd}", second, classes, price),
        (*agreed, classes, f"--epsilon={odd}"),
        (*agreed, classes, "--set", f"width={odd}", price),
        ("release", released, folder, f"--epsilon-a={odd}", "-o", folder / "r"),
        ("train", method, folder, f"{flag}={odd}", "--split=none"),
        ("train", method, folder, f"--split={odd}", "--device=none"),
        ("compare", f"{method},{odd}", folder, "--device=none"),
        ("tune", method, folder, f"--over={key}={odd},{rng.choice(NUMBERS)}", "--device=none"),
        ("attack", folder, f"--attack={odd}"),
        ("audit", odd or "nothing"),
    ]


def targets(base: Path) -> list[Target]:
    """All of them, made once under `base`."""
    plain, partly = people(base / "people"), people(base / "partly", private_edges=True)
    sparse, packed = (people(base / name, **{name: True}, private_edges=True) for name in ("sparse", "parquet"))
    network = ("--epochs", 1, "--set", "hidden=4", "--epsilon-x", 1, "--epsilon-y", 1)
    runs = {
        "lpgnn": run_of("lpgnn", plain, base / "lpgnn", *network),
        "label-pool": run_of("label-pool", plain, base / "label-pool", "--epsilon-y", 1),
        "class-sums": run_of("class-sums", plain, base / "class-sums", "--epsilon", 4, "--delta", 0.01),
    }
    released = base / "released"
    assert main(["release", "edge-rand", str(partly), "--epsilon-a", "1", "-o", str(released)]) == 0
    parties = _federation(base, plain)
    describe = _describing
    elsewhere = sources(base / "sources", plain)
    bare = {name: bare_model(run, base / f"bare-{name}") for name, run in runs.items()}
    files = ("model.safetensors",)
    models = [Target(f"model {name}", path, files, _predicting(plain), resealed) for name, path in bare.items()]
    return [
        Target("own csv", partly, ("graph.toml", "nodes.csv", "edges.csv"), describe, accepted=same_after_rewriting),
        Target("own sparse", sparse, ("*.toml", "*.csv"), describe, accepted=same_after_rewriting),
        Target("own parquet", packed, ("*.parquet",), describe, accepted=same_after_rewriting),
        Target("undeclared", elsewhere / "undeclared", ("*.csv", "*.json"), _declaring),
        Target("sources", elsewhere, ("graph.*",), _importing),
        Target("release", released, ("*.json", "*.toml", "*.parquet"), _reading),
        Target("run", runs["lpgnn"], ("*.json", "*.toml", "*.jsonl", "public/*"), _reading),
        *models,
        *model_targets(base, plain, resealed),
        *published_targets(base / "published"),
        *stored_targets(base, plain),
        Target(
            "attacked run", _attacked(runs["lpgnn"], base / "attacked"), ("attack-*.json",), _reading_attacks, attacks
        ),
        Target("party", parties / "holder2", ("*",), partial(_party, plain)),
        Target("split", base / "split", ("holder*/*",), _agreeing),
        Target("certificates", parties, ("holder*/certificate.pem",), _introducing),
        Target("numbers", plain, ("graph.toml",), numbers, change=lambda content, name, rng: content),
    ]


def _federation(base: Path, plain: Path) -> Path:
    assert main(["federation", "split", str(plain), "-o", str(base / "split")]) == 0
    parties = base / "parties"
    words = ["federation", "init", "--from", str(base / "split"), "-o", str(parties), "--epsilon", "8"]
    assert main(words) == 0
    status = {"party": "holder2", "state": "running", "round": 1, "rounds": 5, "epsilon": 1.0, "epsilon_total": 8.0}
    status |= {"reader": "the server", "time": "2026-01-01"}
    (parties / "holder2" / "status.json").write_text(json.dumps(status))
    return parties


def _describing(copy: Path, rng: random.Random) -> Sequence[Words]:
    return [("data", "describe", copy), ("data", "describe", copy, "--json")]


def sources(folder: Path, plain: Path) -> Path:
    """A graph as other programs write it, and tables without a declaration beside answers."""
    import networkx
    import numpy
    from safetensors.numpy import save_file

    graph = networkx.path_graph(5)
    networkx.set_node_attributes(graph, {node: {"age": node, "x": [0.5, 1.0]} for node in graph})
    folder.mkdir()
    (folder / "graph.json").write_text(json.dumps(networkx.node_link_data(graph, edges="edges")))
    for node in graph:
        del graph.nodes[node]["x"]
    networkx.write_graphml(graph, folder / "graph.graphml")
    networkx.write_edgelist(graph, folder / "graph.txt")
    ends = numpy.array([[0, 1], [1, 2]])
    arrays: dict[str, Any] = {"x": numpy.ones((5, 2), "f4"), "edge_index": ends, "y": numpy.arange(5)}
    numpy.savez(folder / "graph.npz", **arrays)
    save_file(arrays, folder / "graph.safetensors")
    tables = folder / "undeclared"
    tables.mkdir()
    for name in ("nodes.csv", "edges.csv"):
        shutil.copy(plain / name, tables)
    columns = {"x": {"number": [0, 1]}, "y": {"number": [0, 1]}}
    answers = {"private": ["labels"], "classes": ["a", "b"], "directed": False, "columns": columns, "split": "part"}
    (tables / "answers.json").write_text(json.dumps(answers))
    return folder


def _declaring(copy: Path, rng: random.Random) -> Sequence[Words]:
    answers = ("--answers", copy / "answers.json")
    return [
        ("data", "init", copy, *answers),
        ("data", "init", copy, "--draft"),
        ("data", "init", copy, *answers, "--json"),
    ]


def _importing(copy: Path, rng: random.Random) -> Sequence[Words]:
    return [("data", "import", path, "--out", copy / "out") for path in sorted(copy.glob("graph.*"))]


def _reading(copy: Path, rng: random.Random) -> Sequence[Words]:
    side = ("compare-runs", copy, "--out", copy.with_name("side"))
    return [("compare-runs", copy, "--json"), *[("compare-runs", copy)] * 4, *[("report", copy)] * 2, side]


def _reading_attacks(copy: Path, rng: random.Random) -> Sequence[Words]:
    return [("report", copy), ("compare-runs", copy)]


def _predicting(data: Path) -> Callable[[Path, random.Random], Sequence[Words]]:
    def commands(copy: Path, rng: random.Random) -> Sequence[Words]:
        outs = [("predict", copy, data, "--out", copy / f"p.{kind}") for kind in ("csv", "parquet")]
        return [("predict", copy, data, "--json"), *outs]

    return commands


def _attacked(run: Path, folder: Path) -> Path:
    from tests.reports.base.test_card import attack_results

    shutil.copytree(run, folder, symlinks=True)
    for attack, results in attack_results().items():
        content = {label: result.to_dict() for label, result in results.items()}
        (folder / f"attack-{attack}.json").write_text(seal(content))
    return folder


def attacks(content: bytes, name: str, rng: random.Random) -> bytes:
    """A file of results that is changed, and most often has a hash that fits."""
    if rng.random() < 0.3:
        return mutate(content, name, rng)
    changed = mutate(
        json.dumps({key: value for key, value in json.loads(content).items() if key != "sha256"}).encode(), name, rng
    )
    try:
        return seal(dict(json.loads(changed))).encode()
    except (ValueError, TypeError, RecursionError):
        return changed


def _agreeing(copy: Path, rng: random.Random) -> Sequence[Words]:
    init = ("federation", "init", "--from", copy, "-o", copy / "f", "--epsilon", 8)
    return [init, ("data", "describe", copy / "holder1")]


def _introducing(copy: Path, rng: random.Random) -> Sequence[Words]:
    holders = ("--holder", "holder1=h:1=1", "--holder", "holder2=h:2=2", "--classes", "x,y", "--epsilon", 8)
    pairs = [f"--certificate={name}={copy / name / 'certificate.pem'}" for name in ("holder1", "holder2")]
    return [("federation", "init", "-o", copy / "f", *holders, *pairs)]


def _party(data: Path, copy: Path, rng: random.Random) -> Sequence[Words]:
    return [
        ("federation", "plan", copy),
        ("federation", "status", copy),
        ("federation", "verify", copy, copy / "transcript.jsonl"),
        ("federation", "review", copy),
        ("federation", "sign", copy),
        ("federation", "sign", copy, "--agreement", copy / "agreement.toml", "--with", copy / "signatures.json"),
        ("federation", "serve", copy, "--patience", "0"),
        ("federation", "join", copy, data, "--patience", "0"),
    ]
