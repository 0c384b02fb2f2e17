"""Link beliefs on growing networks: a round of messages beside the plain formula in the same run, and the whole fit.

    python benchmarks/link_beliefs.py --nodes 10000 100000 1000000

About three reported entries a person, one of them false; private labels, no features, 5 classes.  Each size runs in a
process of its own, on one thread.  "plain" is a round of messages over all pairs at once, as torch says it: gather,
softmax, the exponentials of a table for each pair, logarithm, sums.  CPU seconds, the best of `--repeats`; peak memory
is that of the fit on reports, the made graph included.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

from timing import in_turns, processor

CLASSES, LARGE = 5, 10_000_000


def main() -> None:
    """Measure each size in a fresh process and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--method", choices=["beliefs", "all"], default="beliefs")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.repeats, chosen.method)))
        return
    rows: list[dict[str, float]] = []
    print(f"{processor()}, one thread")
    for nodes in chosen.nodes:
        options = ["--one", str(nodes), "--repeats", str(chosen.repeats), "--method", chosen.method]
        done = subprocess.run([sys.executable, __file__, *options], check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout))
        print("  ".join(f"{name} {value:,.3g}" for name, value in rows[-1].items()), flush=True)
    for name in ("round", "fit") if len(rows) > 1 else ():
        sizes, seconds = (np.log([row[key] for row in rows]) for key in ("nodes", name))
        slope = float(np.polyfit(sizes, seconds, 1)[0])
        far = math.exp(seconds[-1] + slope * (math.log(LARGE) - sizes[-1]))
        print(f"{name} grows as nodes^{slope:.2f}; {LARGE:,} people: {far:,.0f} CPU s, extrapolated")


def measure(nodes: int, repeats: int, method: str) -> dict[str, float]:
    """Return the figures of one size."""
    import torch

    from graphveil.graphs import random_split, social_graph
    from graphveil.methods.links.collection import named_pairs
    from graphveil.methods.links.link_beliefs import LinkBeliefs
    from graphveil.models.blocks.block_model import PairMessages
    from graphveil.privacy import SeededRandomness

    torch.set_num_threads(1)
    graph = social_graph(nodes, average_degree=4, dimension=20, apps=2, classes=CLASSES, seed=1)
    # Each list is half of the others long on average: one false entry a person.
    epsilon = math.log((nodes - 1) / 2 - 1)
    core = LinkBeliefs(epsilon_x=None, epsilon_a=epsilon, epsilon_y=1.0, reading=method)
    reports = core.randomize(graph, split=random_split(graph, 0), randomness=SeededRandomness(1))
    start = time.process_time()
    core.fit_reports(reports)
    fit = time.process_time() - start
    # Before the plain formula, which needs more.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pairs = named_pairs(reports)
    generator = torch.Generator().manual_seed(1)
    beliefs = torch.randn(nodes, CLASSES, generator=generator)
    table = torch.randn(144, CLASSES, CLASSES, generator=generator)
    cell = torch.randint(144, (len(pairs.source),), generator=generator)
    sent = PairMessages.between(pairs.source, pairs.target, cell)
    messages = sent.zero_messages(beliefs)
    sent.renew(messages, beliefs, table.exp())  # compiles
    ours, plain = in_turns(
        lambda: sent.renew(messages, beliefs, table.exp()),
        lambda: plain_round(pairs.source, pairs.target, cell, messages.flatten(0, 1), beliefs, table),
        repeats=repeats + 1,
    )
    each = 1e9 / (2 * len(cell))
    return {
        "nodes": nodes,
        "entries": len(cell),
        "plain": plain,
        "round": ours,
        "ratio": plain / ours,
        "ns a message, plain": plain * each,
        "ours": ours * each,
        "fit": fit,
        "peak MB": peak,
    }


def plain_round(source, target, cell, messages, beliefs, table):  # type: ignore[no-untyped-def]
    """Return renewed messages [2 S, c] and their sums [n, c], one operation of torch after the other."""
    import torch

    both = torch.cat([table, table.transpose(1, 2)])
    sender, receiver = torch.cat([target, source]), torch.cat([source, target])
    cells = torch.cat([cell, cell + len(table)])
    cavity = torch.softmax(beliefs[sender] - messages.roll(len(source), dims=0), dim=1)
    evidence = torch.empty_like(cavity)
    for start in range(0, len(cells), 1 << 16):
        here = slice(start, start + (1 << 16))
        evidence[here] = torch.bmm(both[cells[here]].exp(), cavity[here, :, None])[:, :, 0].clamp_min(1e-30).log()
    new = messages.lerp(evidence, 0.7)
    return new, torch.zeros_like(beliefs).index_add(0, receiver, new)


if __name__ == "__main__":
    main()
