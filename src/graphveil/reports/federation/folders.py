"""Folders of a federation before it runs: a split for experiments, and every party's key, certificate and agreement.

split    FOLDER/holder1 ...    own-files folders, with rows in different orders, as real holders have them
init     FOLDER/server, FOLDER/<holder> ...    key.pem, certificate.pem, agreement.toml, signatures.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphveil.errors import DataError, InputError
from graphveil.federation.core.agreement import (
    FILE,
    SIGNATURES,
    Agreement,
    Party,
    agreement_text,
    parse_agreement,
    sign,
)
from graphveil.federation.core.id_forms import EXACT
from graphveil.federation.core.setting import ENTRIES, OPTIONS, Option, require_options, room_for
from graphveil.federation.crypto.keys import (
    CERTIFICATE,
    KEY,
    fingerprint_of,
    name_of,
    new_identity,
    read_identity,
    require_signature,
    write_identity,
)
from graphveil.federation.simulation import feature_parts, vertical_partition
from graphveil.files.columns import width_of
from graphveil.files.reading import LARGEST_TOML, read_bytes, read_json
from graphveil.files.writing import new_folder, write_bytes, write_text, writing
from graphveil.graphs import Graph, load_plain, make_graph, published_split, random_split
from graphveil.graphs.declared.declaration import read_declaration
from graphveil.graphs.tables.write import write_folder
from graphveil.graphs.value.checks import require_one_label
from graphveil.graphs.value.features import features_from_rows
from graphveil.graphs.value.schema import PRIVATE_PARTS
from graphveil.reports.federation.review import PREVIOUS, agreement_in, require_reviewed
from graphveil.runtime.checks import KINDS


@dataclass(frozen=True)
class Facts:
    """What an agreement states beside settings; parties have no certificates yet, `ids` is the form of ids."""

    parties: tuple[Party, ...]
    classes: tuple[str, ...]
    low: float
    high: float
    directed: bool = False
    ids: str = EXACT


def shares_of(proportion: str | None, parties: int) -> list[float]:
    """Return the shares in "5:5"; InputError for not one positive number a holder.

    Args:
        proportion: what was typed; None is equal shares.
    """
    try:
        shares = [float(part) for part in proportion.split(":")] if proportion else [1.0] * parties
    except ValueError:
        shares = []
    if len(shares) != parties or not all(share > 0 for share in shares):
        allowed = f"{parties} positive numbers with colons between"
        remedy = f"or --parties {len(shares)}" if len(shares) > 1 else None
        raise InputError(f"proportion {proportion!r}", allowed=allowed, remedy=remedy)
    return shares


def write_split(graph: Graph, shares: Sequence[float], path: Path, *, seed: int) -> dict[str, Any]:
    """Write one own-files folder a holder; the first has the labels and the split.

    Args:
        shares: one number a holder.
        seed: of the partition, the split and the order of rows.

    Raises:
        InputError: the folder is already there, or nodes have several labels.
    """
    require_one_label(graph)
    nodes, ids = int(graph.num_nodes), [str(value) for value in getattr(graph, "ids", range(int(graph.num_nodes)))]
    split = published_split(graph) or random_split(graph, seed)
    generator = torch.Generator().manual_seed(seed)
    summary: dict[str, Any] = {"folder": str(path), "nodes": nodes, "holders": []}
    with new_folder(path, owner_only=True) as folder:
        parts = vertical_partition(graph, shares, seed=seed)
        columns = feature_parts(graph.schema, shares, np.random.default_rng(seed))
        for number, ((x, edge_index), features) in enumerate(zip(parts, columns, strict=True), start=1):
            # In another order at each holder: if rows were in one order, a run would succeed without alignment too.
            name, order = f"holder{number}", torch.randperm(nodes, generator=generator)
            position = torch.empty_like(order)
            position[order] = torch.arange(nodes)
            has_labels = number == 1
            masks = (
                {f"{part}_mask": getattr(split, part)[order] for part in ("train", "val", "test")}
                if has_labels
                else None
            )
            part = make_graph(
                features_from_rows(x[order.numpy()]),
                position[edge_index],
                graph.y[order] if has_labels else torch.full((nodes,), -1),
                graph.schema.derived(selected=features.tolist(), name=name, private=PRIVATE_PARTS),
                ids=[ids[row] for row in order.tolist()],
                masks=masks,
                like=graph,
            )
            write_folder(part, folder / name, format="parquet")
            names = {"names": [column.name for column in part.schema.columns]} if part.schema.columns else {}
            counts = {"columns": len(features), **names, "edges": int(edge_index.shape[1])}
            summary["holders"].append({"name": name, **counts, "labels": has_labels})
    return summary


def facts_of(source: Path, port: int) -> Facts:
    """Return the facts of a folder of `federation split`, every party on this machine.

    Args:
        port: of the server; holders have the next ones.

    Raises:
        DataError: no holders are there, or they differ in range, classes or direction.
    """
    folders = sorted(path for path in source.glob("holder*") if path.is_dir())
    if not folders:
        raise DataError("holds no holder1, holder2, ...", where=str(source), remedy="graphveil federation split")
    graphs = [load_plain(str(folder)) for folder in folders]
    schemas = [graph.schema for graph in graphs]
    parties = [Party("server", "server", f"127.0.0.1:{port}", "")]
    for number, (folder, graph, schema) in enumerate(zip(folders, graphs, schemas, strict=True), start=1):
        address = f"127.0.0.1:{port + number}"
        room = room_for(int(graph.edge_index.shape[1]), int(graph.num_nodes))
        parties.append(Party(folder.name, "holder", address, "", schema.dimension, number == 1, room, schema.columns))
    first = schemas[0]
    for folder, schema in zip(folders, schemas, strict=True):
        for fact in ("low", "high", "directed"):
            if getattr(schema, fact) != getattr(first, fact):
                agreed = f"{getattr(first, fact)}, as {folders[0].name} declares"
                raise DataError(f"{fact} is {getattr(schema, fact)}", where=str(folder), allowed=agreed)
    return Facts(tuple(parties), first.classes, first.low, first.high, first.directed)


def facts_from(
    server: str, holders: Sequence[str], classes: str | None, feature_range: str, *, directed: bool = False
) -> Facts:
    """Return the facts that were typed; InputError where something is missing or cannot be read.

    Args:
        server: HOST:PORT.
        classes: names with commas between.
        feature_range: LOW,HIGH.
        holders: NAME=HOST:PORT=COLUMNS[=ENTRIES] each, the first has the labels; for COLUMNS also a graph.toml that
            declares them; ENTRIES: for how many connections a node there is room.
    """
    if not holders:
        raise InputError("no holders", remedy="--from FOLDER of federation split, or --holder NAME=HOST:PORT=COLUMNS")
    try:
        low, high = (float(part) for part in feature_range.split(","))
    except ValueError as error:
        raise InputError(f"range {feature_range!r}", allowed="LOW,HIGH") from error
    parties = [Party("server", "server", server, "")]
    for number, text in enumerate(holders):
        name, address, columns = text.split("=", 2) if text.count("=") > 1 else ("", "", "")
        typed, _, room = columns.rpartition("=")
        columns, entries = (typed, int(room)) if typed and room.isdecimal() else (columns, ENTRIES)
        if not (columns.isdecimal() or Path(columns).is_file()):
            allowed = "NAME=HOST:PORT=COLUMNS[=ENTRIES], with a number of columns or the graph.toml that declares them"
            raise InputError(f"holder {text!r}", allowed=allowed)
        if columns.isdecimal():
            parties.append(Party(name, "holder", address, "", int(columns), number == 0, entries))
            continue
        declared = read_declaration(Path(columns))
        if (declared.low, declared.high) != (low, high):
            what = f"range {low:g},{high:g} is not that of {columns}"
            remedy = f"--range {declared.low:g},{declared.high:g}, if all holders declare that"
            raise InputError(what, where="--range", remedy=remedy)
        if declared.directed != directed:
            what = f"{columns} says directed = {str(declared.directed).lower()}"
            add = "add --directed, if the edges of all holders have a direction"
            raise InputError(what, where="--directed", remedy="leave out --directed" if directed else add)
        kinds = declared.columns
        width = width_of(kinds) if kinds else declared.dimension or len(declared.features or ())
        if not width:
            remedy = "declare dimension, or write the number of columns in place of the file"
            raise InputError("declares no number of features", where=columns, remedy=remedy)
        parties.append(Party(name, "holder", address, "", width, number == 0, entries, kinds))
    if not classes:
        raise InputError("no classes", where="--classes", remedy="declare all class names, for example yes,no")
    return Facts(tuple(parties), tuple(classes.split(",")), low, high, directed)


def settings_from(pairs: Sequence[str]) -> dict[str, Option]:
    """Return settings from KEY=VALUE; InputError for an unknown key, or a value of another type."""
    settings: dict[str, Option] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        key = key.replace("-", "_")
        require_options([key], "--set")
        kind = type(OPTIONS[key])
        try:
            settings[key] = {"true": True, "false": False}[text] if kind is bool else kind(text)
        except (ValueError, KeyError) as error:
            raise InputError(f"{key} is {text!r}", where="--set", allowed=KINDS[kind]) from error
    if "epsilon" not in settings:
        raise InputError(
            "no epsilon",
            where="--epsilon",
            allowed="the total of all publications of one holder, such as 8; or inf: no privacy against the server",
        )
    return settings


def read_certificates(pairs: Sequence[str]) -> dict[str, bytes]:
    """Return certificates of parties by NAME=FILE; InputError where a file is missing or names another party."""
    certificates = {}
    for pair in pairs:
        name, _, file = pair.partition("=")
        if not file or not Path(file).is_file():
            raise InputError(f"certificate {pair!r}", allowed="NAME=FILE of a certificate in PEM")
        certificates[name] = read_bytes(Path(file))
        if name_of(certificates[name]) != name:
            raise InputError(f"the certificate is that of {name_of(certificates[name])}", where=file, allowed=name)
    return certificates


def make_key(name: str, path: Path) -> dict[str, Any]:
    """Write a new key and its certificate; return what `--json` prints.

    Args:
        path: a new folder.
    """
    identity = new_identity(name)
    write_identity(identity, path)
    files = {"certificate": str(path / CERTIFICATE), "key": str(path / KEY)}
    return {"party": name, "folder": str(path), "fingerprint": identity.fingerprint, **files}


def write_parties(
    path: Path, name: str, facts: Facts, settings: Mapping[str, Option], certificates: Mapping[str, bytes]
) -> dict[str, Any]:
    """Write one folder a party and return who is in it.

    Args:
        settings: at least epsilon; all others are written with their defaults, so that whoever signs reads them.
        certificates: of parties that keep their own keys.

    Raises:
        InputError: the folder is already there, a certificate is of nobody, or the agreement is not one.
    """
    names = [party.name for party in facts.parties]
    for party_name in certificates:
        if party_name not in names:
            raise InputError(f"a certificate of {party_name}", where="--certificate", allowed=", ".join(names))
    identities = {party_name: new_identity(party_name) for party_name in names if party_name not in certificates}
    all_certificates = {
        **{party_name: identity.certificate for party_name, identity in identities.items()},
        **certificates,
    }
    parties = tuple(replace(party, certificate=all_certificates[party.name].decode()) for party in facts.parties)
    all_settings = {**OPTIONS, **settings}
    text = agreement_text(
        name, parties, facts.classes, facts.low, facts.high, all_settings, directed=facts.directed, ids=facts.ids
    )
    agreement = parse_agreement(text.encode(), where=str(path))
    signatures = sign(text.encode(), tuple(identities.values()))
    with new_folder(path) as folder:
        for party in parties:
            party_folder = folder / party.name
            # Only for parties whose key was generated here; other keys never leave their parties' machines.
            if party.name in identities:
                write_identity(identities[party.name], party_folder)
            else:
                party_folder.mkdir(mode=0o700)
                write_bytes(party_folder / CERTIFICATE, all_certificates[party.name])
            write_text(party_folder / FILE, text)
            write_text(party_folder / SIGNATURES, signatures)
    return {
        "run": name,
        "folder": str(path),
        "mode": agreement.setting.protocol.mode,
        "agreement": agreement.hash.hex(),
        "parties": [_introduced(party, party.name in identities) for party in parties],
        "unsigned": [party_name for party_name in names if party_name not in identities],
    }


def take_agreement(folder: Path, file: Path) -> None:
    """Copy an agreement into a party's folder; the previous one stays beside it, without its signatures.

    Raises:
        DataError: the file is no agreement.
        InputError: it was not reviewed in this folder.
    """
    data, target = agreement_in(file).data, folder / FILE
    require_reviewed(folder, data, file)
    before = read_bytes(target, largest=LARGEST_TOML) if target.is_file() else data
    if not target.is_file() or before != data:
        if before != data:
            write_bytes(folder / PREVIOUS, before)
        with writing(target):
            # Before the file changes: even after a crash no signatures of another agreement lie beside this one.
            (folder / SIGNATURES).unlink(missing_ok=True)
        write_bytes(target, data)


def add_signature(folder: Path, signature_files: Sequence[Path] = ()) -> dict[str, Any]:
    """Add the signature of a folder's key to its agreement, and those in other parties' files; return who has signed.

    Raises:
        DataError: key or agreement is missing, the key is not of a party, or a signature does not fit.
        InputError: the agreement was not reviewed there.
    """
    identity = read_identity(folder)
    agreement = agreement_in(folder / FILE)
    if fingerprint_of(agreement.party(identity.name).certificate.encode()) != identity.fingerprint:
        raise DataError(f"the key is not the agreed one of {identity.name}", where=str(folder))
    file = folder / SIGNATURES
    signatures: dict[str, str] = {}
    for source in (file, *signature_files):
        if source != file or file.is_file():
            signatures |= _signatures(source, agreement)
    require_reviewed(folder, agreement.data)
    signatures |= json.loads(sign(agreement.data, (identity,)))
    write_text(file, json.dumps(signatures, indent=1) + "\n")
    return {
        "party": identity.name,
        "agreement": agreement.hash.hex(),
        "signed": sorted(signatures),
        "unsigned": [party.name for party in agreement.parties if party.name not in signatures],
        "file": str(file),
    }


def _introduced(party: Party, has_key: bool) -> dict[str, Any]:
    key_facts = {"certificate": fingerprint_of(party.certificate.encode()), "made": has_key}
    return {"name": party.name, "role": party.role, "address": party.address, **key_facts}


def _signatures(file: Path, agreement: Agreement) -> dict[str, str]:
    try:
        content = dict(read_json(file))
        checked = {str(name): bytes.fromhex(str(text)) for name, text in content.items()}
    except FileNotFoundError as error:
        raise DataError("is missing", where=str(file)) from error
    except (ValueError, TypeError) as error:
        raise DataError("holds no signatures", where=str(file)) from error
    for name, signature in checked.items():
        require_signature(agreement.party(name).certificate.encode(), agreement.data, signature)
    return {name: signature.hex() for name, signature in checked.items()}
