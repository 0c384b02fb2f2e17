"""Bands of `graphveil advise` beside what the true graph gives: is the lift inside, and how wide is the band?

    python benchmarks/bands.py digits cora twitch-ru --data-root DATA
    python benchmarks/bands.py cora-ml --pilot cora --data-root DATA     (a public look-alike in place of made graphs)

The advice knows what anybody may know, and of contacts their mean number to one digit.  The truth is the mean lift of
the advised method over two splits of the true graph, with noise of other seeds than the rehearsal's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from graphveil.graphs import load_parts
from graphveil.methods.advise.advice import Request, advise
from graphveil.methods.advise.rehearsal import pilot_world, rehearse

TRUSTS = ("local", "links", "curator", "release")
SEEDS = (101, 102)


def main() -> None:
    """Print a row for each graph and trust."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--trusts", default=",".join(TRUSTS))
    parser.add_argument("--pilot")
    parser.add_argument("--data-root", type=Path)
    args = parser.parse_args()
    pilot = None if args.pilot is None else load_parts(args.pilot, args.data_root)
    for name in args.graphs:
        graph = load_parts(name, args.data_root)
        degree = float(f"{graph.edge_index.shape[1] / graph.num_nodes:.1g}")
        for trust in args.trusts.split(","):
            advice = advise(trust, graph, Request(None, degree=degree, pilot=pilot))
            rule, band = advice.rule, advice.expected
            if rule is None or rule.method is None or band is None:
                continue
            true = rehearse(rule.method, advice.settings, [pilot_world(graph)], rule.over, seeds=SEEDS).trials
            lift = sum(trial.lift.mean for trial in true) / len(true)
            inside = "inside" if band.low <= lift <= band.high else "outside"
            width = 100 * (band.high - band.low)
            print(f"| {name} | {trust} | {band.points}; {100 * lift:.1f} | {width:.1f} | {inside} |", flush=True)


if __name__ == "__main__":
    main()
