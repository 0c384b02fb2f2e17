"""`load_graph`: loads every named set and the user's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from graphveil.engine import LOCAL, Engine
from graphveil.errors import DataError, GraphveilError, InputError, MissingDataError
from graphveil.graphs.declared.declaration import FILE, read_declaration
from graphveil.graphs.named.arrays import ARRAY_SETS, load_arrays
from graphveil.graphs.named.facebook100 import load_facebook100
from graphveil.graphs.named.large import load_arxiv, load_ppi, load_reddit, load_saint
from graphveil.graphs.named.mir_flickr import load_mir_flickr
from graphveil.graphs.named.musae import load_musae
from graphveil.graphs.named.planetoid import load_planetoid
from graphveil.graphs.named.root import DataRoot, FilesPresent, PresenceCheck, data_root
from graphveil.graphs.named.social import digits_parts, social_parts
from graphveil.graphs.releases.release import read_release, refuse_stray_release
from graphveil.graphs.tables.tables import find_table, open_table, read_table, require_table
from graphveil.graphs.tables.tabular import Origin, join_people, list_edges, read_people
from graphveil.graphs.tables.write import is_stored, read_stored
from graphveil.graphs.value.parts import Graph, GraphParts
from graphveil.graphs.value.schema import GraphSchema
from graphveil.graphs.value.value import plain_graph
from graphveil.runtime.progress import ProgressCallback
from graphveil.runtime.words import nearest

_STORED: dict[str, Callable[..., GraphParts]] = {
    **{name: partial(load_planetoid, name) for name in ("cora", "citeseer", "pubmed")},
    **{name: partial(load_musae, name) for name in ("facebook", "lastfm")},
    **{name: partial(load_arrays, name) for name in ARRAY_SETS},
    "ppi": load_ppi,
    "ppi-graphsaint": load_saint,
    "mir-flickr": load_mir_flickr,
    "reddit": load_reddit,
    "ogbn-arxiv": load_arxiv,
}
_MOST_DIGITS = 8
NAMES: tuple[str, ...] = (*sorted(_STORED), "digits", "social")
"""The named data sets; `facebook100-<university>` and `social-<nodes>` are names too."""

SOCIAL_NODES = 5_000
_LEAST_SOCIAL = 81
_SOCIAL = re.compile(r"social(?:[-:](\d+))?")
_FACEBOOK = re.compile(r"facebook100-([a-z0-9-]+)")


def load_graph(
    name_or_path: str | os.PathLike[str] | object,
    root: str | os.PathLike[str] | None = None,
    *,
    schema: GraphSchema | None = None,
    download: bool = True,
    progress: ProgressCallback | None = None,
) -> Graph:
    """Load a named graph, a folder of your own, or an object of PyG or NetworkX.

    Args:
        name_or_path: one of `NAMES`, `facebook100-<university>`, `social-<nodes>`, or a folder with your own files (see
            `read_folder`) or with arrays, which are mapped and only read (see `store_parts`). A name wins over a folder
            of that name; write `./name` for the folder. Also a PyG `Data` or a NetworkX graph (see `as_graph`).
        root: data root; else the environment variable GRAPHVEIL_DATA, else the user cache; may be read-only.
        schema: the public facts, for a graph that does not bring its own, or in place of its own.
        download: fetch an absent named set.
        progress: called with the bytes loaded so far.

    Returns:
        A PyG `Data` with `x` float32 [n, d] (dense, or `torch.sparse_csr` below 10% non-zeros), `edge_index` int64 [2,
        E] (sorted, unique, no self-loops, both directions when undirected), `y` int64 [n] (-1 unknown; float32 [n, c]
        with several labels a node), `num_nodes`, `schema`; the published split as `train_mask`, `val_mask`, `test_mask`
        where there is one; `ids` for your own files.

    Raises:
        MissingDataError: the set is absent and could not be fetched; names the folder.
        MissingExtraError: fetching needs an optional package.
        DataError: a file cannot be used; names file and row.
        InputError: no such name or folder.

    Example:
        >>> import graphveil
        >>> graph = graphveil.load_graph("digits")
        >>> graph.num_nodes, graph.schema.dimension, len(graph.schema.classes)
        (1797, 32, 10)
    """
    # Imported late: a command that only looks at a folder builds no graph.
    from graphveil.graphs.conversions import object_graph

    if not isinstance(name_or_path, str | os.PathLike):
        return object_graph(name_or_path, schema)
    return object_graph(load_parts(name_or_path, root, download=download, progress=progress), schema)


def as_graph(data: object, schema: GraphSchema | None = None) -> Graph:
    """Return the user's object, name or folder as a graph; a graph of graphveil comes back as it is.

    Args:
        data: a graph of graphveil, a PyG `Data`, a NetworkX graph whose nodes have a list of numbers "x", the name of a
            data set, or the path of a folder.
        schema: the public facts, for data that does not bring its own, or in place of its own.

    Raises:
        InputError: it is something else, or a fact is not declared; names the function to call, or shows the line.
        DataError: its content cannot be used.

    Example:
        >>> from graphveil.graphs import as_graph, load_graph
        >>> graph = load_graph("digits")
        >>> as_graph(graph) is graph
        True
    """
    return load_graph(data, schema=schema)


def load_plain(
    data: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> Graph:
    """Load a graph for use inside graphveil, as `load_graph`, but no PyG `Data`, whose import takes long.

    Args:
        root, progress: as in `load_graph`.
        engine: works on blocks of rows of a folder's edges.

    Raises:
        InputError: as `load_graph`.
    """
    return plain_graph(load_parts(data, root, progress=progress, engine=engine))


def load_parts(
    data: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: ProgressCallback | None = None,
    engine: Engine = LOCAL,
) -> GraphParts:
    """Load the parts of a graph, without torch where its files allow that; refusals as of `load_graph`.

    Args:
        root, download, progress: as in `load_graph`.
        engine: works on blocks of rows of a folder's edges.
    """
    name = _canonical_name(data)
    # Names before folders: what a name means must not depend on the working folder.
    if name in _STORED:
        with _published_files(name, root):
            return _STORED[name](DataRoot(data_root(root), download, progress))
    if name == "digits":
        return digits_parts()
    if social := _SOCIAL.fullmatch(name):
        # Before the text is converted: a number of a thousand digits would exhaust memory slowly.
        if len(social[1] or "") > _MOST_DIGITS:
            raise InputError(f"a synthetic network of {social[1][:20]} nodes", allowed=f"at most {_MOST_DIGITS} digits")
        nodes = int(social[1] or SOCIAL_NODES)
        # Fewer people have too few pairs for their mean degree of 20.
        if nodes < _LEAST_SOCIAL:
            raise InputError(f"a synthetic network of {nodes} nodes", allowed=f"social-{_LEAST_SOCIAL} and larger")
        return social_parts(nodes)
    if university := _FACEBOOK.fullmatch(name):
        with _published_files(name, root):
            return load_facebook100(university[1], data_root(root))
    folder = Path(data)
    if folder.is_dir():
        return read_stored(folder) if is_stored(folder) else read_folder(folder, engine)
    raise _unknown(str(data))


def read_folder(folder: Path, engine: Engine = LOCAL) -> GraphParts:
    """Read a graph from `graph.toml`, `nodes.csv|parquet`, `edges.csv|parquet` and `features.csv|parquet`.

    `nodes` has one row a node: an id (any text), feature columns, optionally a label (empty where unknown) and a split
    (train, val, test or empty). `edges` has a source and a target id a row. Big sparse features go into `features`
    instead: one row (id, feature, value) for each entry, feature 0..dimension-1; what is not listed is 0, and without a
    value column each listed entry is 1. A folder that `write_release` wrote has `graph.release`.

    Normalised and reported in `schema.notes`: self-loops removed, duplicate edges merged, undirected edges stored in
    both directions, out-of-range values clipped when `out_of_range = "clip"`, columns with a range of their own scaled
    to 0..1. DataError names the file and, if there is one, the line; also where a release is incomplete or changed.

    Args:
        engine: works on blocks of rows of the edges.
    """
    declared = read_declaration(folder / FILE)
    if not declared.release:
        # An undeclared release.json would attach its guarantee to other data.
        refuse_stray_release(folder)
    release = read_release(folder) if declared.release else None
    origin = Origin(
        where=str(folder / FILE),
        name=folder.resolve().name,
        source=f"declared by the owner in {FILE}",
        remedy=f"add some, or a features file beside {folder}",
        in_file=True,
    )
    nodes = read_table(require_table(folder, "nodes"))
    features_path = find_table(folder, "features")
    people = read_people(nodes, None if features_path is None else read_table(features_path), declared, origin)
    # The table is not kept: sorting the edges reuses its memory.
    edges = list_edges(open_table(require_table(folder, "edges")), people, declared, engine)
    parts = join_people(people, edges, declared, origin, release)
    nodes.refuse_short_lines()
    return parts


def is_name(data: str | os.PathLike[str]) -> bool:
    """Whether `load_graph` takes this for the name of a data set, and not for a folder."""
    return _is_stored(name := _canonical_name(data)) or name == "digits" or bool(_SOCIAL.fullmatch(name))


def present_sets(root: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Return the named sets whose files are there; none is read, and none fetched."""
    folder = data_root(root)
    stored = [name for name in sorted(_STORED) if _files_present(name, folder)]
    universities = sorted((folder / "facebook100").glob("*.mat"))
    return (*stored, *(f"facebook100-{file.stem.lower()}" for file in universities), "digits", "social")


def _files_present(name: str, folder: Path) -> bool:
    try:
        _STORED[name](PresenceCheck(folder, download=False, progress=None))
    except FilesPresent:
        return True
    except MissingDataError:
        return False
    return False


def lasting_source(data: str, root: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Return where to load the same data from, whatever the working folder is then.

    Args:
        data, root: as in `load_parts`.

    Returns:
        "source": the name, or the folder's absolute path; "data_root": where the files of a named set lie, absolute.
    """
    if not is_name(data):
        return {"source": str(Path(data).absolute())}
    stored = _is_stored(_canonical_name(data))
    return {"source": data} | ({"data_root": str(data_root(root).absolute())} if stored else {})


def _canonical_name(data: str | os.PathLike[str]) -> str:
    return data.lower().replace("_", "-") if isinstance(data, str) else ""


def _is_stored(name: str) -> bool:
    return name in _STORED or bool(_FACEBOOK.fullmatch(name))


@contextmanager
def _published_files(name: str, root: str | os.PathLike[str] | None) -> Iterator[None]:
    """Turn every error that a damaged published file causes into DataError; a number too large to cast counts too."""
    try:
        with np.errstate(invalid="raise", over="ignore"):
            yield
    except GraphveilError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise DataError(f"the files of {name!r} cannot be read ({error})", where=str(data_root(root))) from error


def _unknown(name: str) -> InputError:
    if Path(name).is_file():
        remedy = f"give {str(Path(name).parent)!r}"
        return InputError(f"{name!r} is a file", allowed="a folder with graph.toml and tables", remedy=remedy)
    return InputError(
        f"no data set or folder {name!r}",
        allowed=f"{', '.join(NAMES)}, social-<nodes>, facebook100-<university>, or a folder with graph.toml",
        remedy=nearest(name.lower(), NAMES),
    )
