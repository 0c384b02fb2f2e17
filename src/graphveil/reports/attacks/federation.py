"""Attacks on a federation, before or after its run: the agreed run is simulated on all holders' data, which only an
experimenter has.
"""

from __future__ import annotations

from pathlib import Path

import torch

from graphveil.attacks import AttackResult
from graphveil.attacks.federation.catalogue import attack_federation, require_federation_attack, simulate_run
from graphveil.errors import DataError, InputError
from graphveil.federation.core.agreement import FILE, Agreement
from graphveil.federation.modes.holder import Holding
from graphveil.federation.party import holding_of, require_agreed
from graphveil.graphs import load_plain
from graphveil.privacy import Randomness
from graphveil.reports.attacks.files import PLAIN
from graphveil.reports.federation.card import check_party, is_party
from graphveil.reports.federation.plan import draft
from graphveil.runtime.progress import Progress, ProgressCallback


def is_federation(folder: Path) -> bool:
    """Whether a folder is that of a party, or holds folders of parties, as `graphveil federation init` writes them."""
    return _agreement_folder(folder) is not None


def attack_folder(
    folder: Path,
    name: str,
    *,
    randomness: Randomness,
    truth: str | None,
    data_root: Path | None = None,
    nodes: int = 500,
    seed: int = 0,
    plain: bool = True,
    progress: ProgressCallback = lambda event: None,
) -> dict[str, AttackResult]:
    """Return the results of an attack on the agreed run and on the naive design, with the same data.

    Args:
        folder: of the federation, or of one of its parties.
        name: one of `FEDERATION_ATTACKS`.
        truth: a folder with one folder of data for each holder, named as in the agreement.
        nodes: the number of people among whom pairs are judged.
        seed: of weights, undeclared splits, and draws.
        plain: whether the naive design is attacked too.
        progress: called for each simulation.

    Raises:
        DataError: the data are not as agreed; InputError: the attack does not fit, or the holders share nobody.
    """
    require_federation_attack(name)
    agreement_folder = _agreement_folder(folder)
    if agreement_folder is None:
        raise DataError("holds no agreement", where=str(folder), remedy="graphveil federation init makes it")
    # Checked first: the results of an attack on edited folders would be about another run.
    for party in (folder, *sorted(folder.glob("*"))):
        if is_party(party):
            check_party(party)
    agreement, _ = draft(agreement_folder)
    if truth is None:
        raise InputError(
            "the attack simulates the run and needs the data of all holders",
            where="--truth",
            allowed=f"a folder with {', '.join(agreement.setting.names)}, as written by graphveil federation split",
        )
    setting = agreement.setting
    holdings = _holdings_of(agreement, Path(truth), data_root=data_root, seed=seed)
    results: dict[str, AttackResult] = {}
    for label, unprotected in ((setting.protocol.mode, False), (PLAIN, True))[: 1 + plain]:
        progress(Progress(len(results), 1 + plain, f"simulating the federation, {label}"))
        run = simulate_run(setting, holdings, randomness=randomness, seed=seed, unprotected=unprotected, name=name)
        results[label] = attack_federation(name, run, nodes=nodes, seed=seed, unprotected=unprotected)
    return results


def _holdings_of(agreement: Agreement, truth: Path, *, data_root: Path | None, seed: int) -> dict[str, Holding]:
    """Return what each holder has of the people that all share, in one order; errors as of `attack_folder`."""
    setting, graphs = agreement.setting, {}
    for name in setting.names:
        if not (truth / name).is_dir():
            raise DataError(f"no data of {name}", where=str(truth / name), allowed="one folder of own files a holder")
        graphs[name] = load_plain(str(truth / name), root=data_root)
        require_agreed(graphs[name], agreement, name)
    ids = {name: getattr(graph, "ids", range(int(graph.num_nodes))) for name, graph in graphs.items()}
    rows = {name: {str(node_id): row for row, node_id in enumerate(node_ids)} for name, node_ids in ids.items()}
    first, *rest = rows.values()
    shared = [node_id for node_id in sorted(first) if all(node_id in other for other in rest)]
    if not shared:
        raise InputError("the holders share no id", where=str(truth))
    orders = {name: torch.tensor([row_of[node_id] for node_id in shared]) for name, row_of in rows.items()}
    return {
        name: holding_of(graph, orders[name], labels=name == setting.label_holder, seed=seed)
        for name, graph in graphs.items()
    }


def _agreement_folder(folder: Path) -> Path | None:
    """The first folder with an agreement: this one, or one inside; None: there is none."""
    folders = sorted(path for path in folder.glob("*") if path.is_dir()) if folder.is_dir() else []
    return next((path for path in (folder, *folders) if (path / FILE).is_file()), None)
