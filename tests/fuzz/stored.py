"""What commands kept earlier and read again: models of every method, ledgers, attacks, logs, rounds, comparisons."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from graphveil.cli import main
from tests.fuzz.mutate import mutate
from tests.fuzz.target import Target, Words

METHODS: dict[str, dict[str, Any]] = {
    "solitude": {"epsilon_a": 4.0, "epochs": 1, "hidden": 4},
    "blink": {"epsilon_a": 4.0, "epochs": 1, "hidden": 4},
    "dprr": {"epsilon_a": 4.0, "epochs": 1, "hidden": 4},
    "link-beliefs": {"epsilon_x": None, "epsilon_a": 4.0},
    "label-propagation": {"epsilon_y": 1.0},
    "gap": {"epsilon": 4.0, "delta": 0.01, "epochs": 1, "hidden": 4, "queries": 1},
    "progap": {"epsilon": 4.0, "delta": 0.01, "epochs": 1, "hidden": 4},
    "dp-mlp": {"epsilon": 4.0, "delta": 0.01, "hidden": 4, "passes": 1},
    "heterorr": {"epsilon_x": 1.0, "epsilon_a": 1.0, "epochs": 1, "hidden": 4},
}
RUN = "ab" * 32


def saved(method: str, data: Path, folder: Path) -> Path:
    """A model of a method, with what is kept beside it."""
    from graphveil.graphs import load_graph
    from graphveil.methods.registry import build_method
    from graphveil.privacy import SecureRandomness

    graph = load_graph(data)
    model = build_method(method, METHODS[method], len(graph.schema.classes))
    model.fit(graph, randomness=SecureRandomness()).save(folder)
    (folder / "ledger.json").write_text(json.dumps(model.ledger.to_dict()))
    return folder


def load_and_ask(copy: Path) -> None:
    """Everything that a loaded model says without data."""
    from graphveil.methods import load_method

    method: Any = load_method(copy)
    assert method.guarantee.sentence()
    probabilities = method.predict_proba()
    assert bool((probabilities == probabilities).all()), "NaN"


def model_targets(base: Path, data: Path, change: Callable[[bytes, str, random.Random], bytes]) -> list[Target]:
    """The saved models of all methods that `targets` does not train by command."""

    def commands(copy: Path, rng: random.Random) -> Sequence[Words]:
        words = ("predict", copy, data, "--out", copy / "p.parquet")
        return [words, partial(load_and_ask, copy), partial(load_and_ask, copy)]

    folders = {method: saved(method, data, base / f"model-{method}") for method in METHODS}
    models = [Target(f"model {name}", folder, ("*.safetensors",), commands, change) for name, folder in folders.items()]
    beside = Target("ledger beside", folders["solitude"], ("ledger.json",), commands)
    return [*models, beside]


def sealed(content: bytes, name: str, rng: random.Random) -> bytes:
    """A checkpoint with other tensors whose seal fits; now and then other bytes."""
    from safetensors.torch import load, save

    if not name.endswith((".checkpoint", ".kept")) or rng.random() < 0.2:
        return mutate(content, name, rng)
    data = content[:-32]
    if rng.random() < 0.5:
        data = mutate(data, name, rng)
    else:
        import torch

        tensors = load(data)
        place = rng.choice(sorted(tensors))
        tensors[place] = rng.choice(
            (torch.zeros(0), torch.tensor(list(b"[1]"), dtype=torch.uint8), torch.full((3, 3), float("nan")))
        )
        if rng.random() < 0.3:
            del tensors[place]
        data = save(tensors)
    return data + hashlib.sha256(data).digest()


def _rounds(folder: Path) -> Path:
    import torch

    from graphveil.federation.core.checkpoints import Checkpoints

    store = Checkpoints(folder, RUN)
    store.save(1, {"w": torch.ones(3, 2), "large": torch.zeros(1 << 18)})
    store.save(2, {"w": torch.ones(3, 2)})
    store.publish(2, "rows")
    store.close()
    (folder / "lock").unlink()
    return folder


def go_on(copy: Path) -> None:
    """What a party does with its rounds when it starts again."""
    from graphveil.federation.core.checkpoints import Checkpoints

    store = Checkpoints(copy, RUN)
    try:
        assert store.published() >= 0
        assert isinstance(store.published_name(), str)
        rounds = store.rounds()
        for round in rounds:
            state = store.load(round)
        if rounds:
            store.save(rounds[-1] + 1, dict(state))
    finally:
        store.close()


def _transcript(folder: Path) -> Path:
    """A party's transcript of a few messages, beside the agreement."""
    from graphveil.federation.core.messages import Entry
    from graphveil.federation.transport.session import Message
    from graphveil.reports.federation.folders import facts_from, write_parties
    from graphveil.reports.federation.log import TranscriptFile

    holders = ["one=127.0.0.1:2=3", "two=127.0.0.1:3=4"]
    write_parties(folder, "run", facts_from("127.0.0.1:1", holders, "a,b", "0,1"), {"epsilon": 4.0}, {})
    party = folder / "one"
    with TranscriptFile(party, _agreement(party)).recording() as record:
        for round in range(3):
            record(Message(Entry(round, "one", "server", "noisy-share", (5, 2), 80, "a noisy sum"), "5e", 64 * "a"))
    return party


def _agreement(party: Path) -> Any:
    from graphveil.federation.core.agreement import parse_agreement

    return parse_agreement((party / "agreement.toml").read_bytes())


def read_messages(copy: Path) -> None:
    """What a party's outcome is made of."""
    from graphveil.reports.federation.log import TRANSCRIPT, by_kind, read_log

    transcript = read_log(copy / TRANSCRIPT, _agreement(copy)).transcript
    assert transcript.bytes >= 0 and isinstance(by_kind(transcript), list)


def _log(folder: Path) -> Path:
    from graphveil.reports.runs.trial_log import TrialLog

    folder.mkdir()
    log = TrialLog(folder / "out.trials.jsonl")
    for trial in range(3):
        log({"trial": trial, "settings": {"hops": trial}, "score": 0.5})
    log.end()
    return folder


def _compared(data: Path, folder: Path) -> Path:
    assert main([str(word) for word in (*_COMPARE, data, *_HOW, "--out", folder)]) == 0
    return folder


_COMPARE = ("compare", "label-pool")
_HOW = ("--epsilon-y", "1,2", "--repeats", 1, "--no-controls", "--threads", 1)


def stored_targets(base: Path, data: Path) -> list[Target]:
    """All targets of this file but the models."""
    logged = _log(base / "log")

    def tuned(copy: Path, rng: random.Random) -> Sequence[Words]:
        from graphveil.reports.runs.trial_log import read_trials

        return [
            partial(read_trials, copy / "out.trials.jsonl"),
            ("tune", "gap", data, "--over", "hops=1,2", "--out", copy / "out"),
        ]

    def compared(copy: Path, rng: random.Random) -> Sequence[Words]:
        return [(*_COMPARE, data, *_HOW, "--out", copy, "--json")]

    return [
        Target("rounds", _rounds(base / "rounds"), ("*",), lambda copy, rng: [partial(go_on, copy)], sealed),
        Target(
            "transcript",
            _transcript(base / "agreed"),
            ("transcript.jsonl",),
            lambda copy, rng: [partial(read_messages, copy)],
        ),
        Target("trial log", logged, ("*",), tuned),
        Target("comparison", _compared(data, base / "compared"), ("comparison.json", "cells/*"), compared),
    ]
