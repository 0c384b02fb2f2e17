"""Attack a federation before or after it runs: simulate the agreed run on all holders' data, as nobody but an
experimenter could, and keep what was found in the federation's folder.
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
    """Whether a folder is a party's, or holds parties' folders, as `graphveil federation init` makes them."""
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
    """Return what an attack finds in the agreed run and, beside it, in the naive design on the same data. Raises
    DataError for other data than was agreed; InputError for an attack that does not fit, or holders that share nobody.

    Args:
        folder: of the federation, or of one of its parties.
        name: one of `FEDERATION_ATTACKS`.
        truth: the folder with one folder of data a holder, named as in the agreement.
        nodes: among how many people pairs are judged.
        seed: of weights, splits that are not declared, and draws.
        progress: hears of each simulation.
    """
    require_federation_attack(name)
    agreement_folder = _agreement_folder(folder)
    if agreement_folder is None:
        raise DataError("holds no agreement", where=str(folder), remedy="graphveil federation init makes it")
    # What parties kept is checked first: an attack on edited folders would speak of another run.
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
    """Return what each holder has, for the people that all share, in one order; DataError and InputError as above."""
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
    """The first folder with an agreement: this one, or one of those in it."""
    folders = sorted(path for path in folder.glob("*") if path.is_dir()) if folder.is_dir() else []
    return next((path for path in (folder, *folders) if (path / FILE).is_file()), None)
