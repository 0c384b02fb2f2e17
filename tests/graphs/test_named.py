"""Named sets on made files: every format, every refusal, downloads, and nothing left half-written."""

from __future__ import annotations

import io
import pickle
import re
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from graphveil.errors import DataError, InputError, MissingDataError, MissingExtraError
from graphveil.graphs import NAMES, data_root, load_graph, validate
from graphveil.graphs.named.root import unzip
from graphveil.runtime.progress import Progress
from tests.graphs.published_made import citeseer, dblp, facebook, lastfm, twitch

STORED = [name for name in NAMES if name not in ("digits", "social")]
BY_HAND = ("mir-flickr", "ppi-graphsaint")  # no address that a program may fetch them from


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def refuse(*arguments, **options):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


@pytest.mark.parametrize("name", [name for name in STORED if name != "ogbn-arxiv"])
@pytest.mark.parametrize("download", [True, False])
def test_an_absent_set_names_the_folder_and_leaves_nothing(tmp_path, name, download):
    root = tmp_path / "root"
    with pytest.raises(MissingDataError) as caught:
        load_graph(name, root, download=download)
    message = str(caught.value)
    assert message.startswith(str(root))
    assert f"data set {name!r}:" in message
    assert "GRAPHVEIL_DATA" in message
    assert ("no route to host" in message) == (download and name not in BY_HAND)
    assert not root.exists()


def test_ogb_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ogb", None)
    monkeypatch.setitem(__import__("sys").modules, "ogb.nodeproppred", None)
    with pytest.raises(MissingExtraError, match=re.escape("run: pip install 'graphveil[ogb]'")):
        load_graph("ogbn-arxiv", tmp_path / "root")
    assert not (tmp_path / "root").exists()
    with pytest.raises(MissingDataError, match="ogbn_arxiv"):
        load_graph("ogbn-arxiv", tmp_path / "root", download=False)


def served(monkeypatch, content: bytes, length: int | None = None) -> list[str]:
    """Serve the same bytes at every address; returns the list of addresses asked for."""
    urls: list[str] = []

    class Answer(io.BytesIO):
        @property
        def headers(self) -> dict[str, str]:
            return {"Content-Length": str(len(content) if length is None else length)}

    def urlopen(url, timeout):
        urls.append(url)
        return Answer(content)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return urls


def zipped(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"facebook_large/{file.name}")
    return packed.getvalue()


def test_a_download_arrives_whole_with_progress(tmp_path, monkeypatch):
    source = facebook(tmp_path / "made") / "musae" / "facebook"
    urls = served(monkeypatch, zipped(source))
    seen: list[Progress] = []
    graph = load_graph("facebook", tmp_path / "root", progress=seen.append)
    assert graph.num_nodes == 22_470
    assert urls == ["https://snap.stanford.edu/data/facebook_large.zip"]
    assert seen[-1].done == seen[-1].total > 0
    assert sorted(file.name for file in (tmp_path / "root/musae").rglob("*")) == sorted(
        ["facebook", *(file.name for file in source.iterdir())]
    )
    served(monkeypatch, b"", 1)
    assert load_graph("facebook", tmp_path / "root").num_nodes == 22_470  # now without asking


@pytest.mark.parametrize(
    "content, length, reason",
    [
        (b"half", 9, "ended after 4 of 9 bytes"),
        (b"no zip", None, "File is not a zip file"),
        (b"", None, "not a zip file"),
    ],
)
def test_a_broken_download_leaves_nothing(tmp_path, monkeypatch, content, length, reason):
    served(monkeypatch, content, length)
    with pytest.raises(MissingDataError, match=reason):
        load_graph("facebook", tmp_path / "root")
    assert not (tmp_path / "root").exists()

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(urllib.request, "urlopen", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_graph("facebook", tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_a_download_without_the_files_or_larger_than_any_set_is_refused(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").write_text("hello")
    served(monkeypatch, zipped(tmp_path / "other"))
    with pytest.raises(MissingDataError, match="also from what was downloaded"):
        load_graph("facebook", tmp_path / "root")
    monkeypatch.setattr("graphveil.graphs.named.root.LARGEST_DOWNLOAD", 1000)
    served(monkeypatch, bytes(2000))
    with pytest.raises(MissingDataError, match="more than 1,000 bytes"):
        load_graph("facebook", tmp_path / "root")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("nested/x", bytes(5000))
    with pytest.raises(zipfile.BadZipFile, match="unpacks to more"):
        unzip(tmp_path / "bomb.zip", ("x",), tmp_path)


def test_the_root_is_argument_then_variable_then_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHVEIL_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root("given") == Path("given")
    assert data_root() == tmp_path / "variable"
    monkeypatch.delenv("GRAPHVEIL_DATA")
    assert data_root() == tmp_path / "cache" / "graphveil"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_root() == tmp_path / "home" / ".cache" / "graphveil"
    with pytest.raises(InputError, match="no home folder of this user; name the folder of data sets with --data-root"):
        data_root("~nobody-of-this-name/data")


def test_an_unknown_name_suggests_the_nearest_and_case_does_not_matter(tmp_path):
    with pytest.raises(InputError, match=r"no data set or folder 'facebok'.*did you mean facebook\?"):
        load_graph("facebok", tmp_path)
    root = facebook(tmp_path)
    before = sorted(root.rglob("*"))
    assert load_graph("Facebook", root).schema.name == "facebook"
    assert sorted(root.rglob("*")) == before  # nothing is written into the root


def test_pickles_that_are_not_the_published_ones_are_never_opened(tmp_path):
    """A foreign pickle could run anything: this one would leave a file."""
    folder = tmp_path / "pyg/Planetoid/Cora/raw"
    folder.mkdir(parents=True)
    left = tmp_path / "was opened"

    class Opened:
        def __reduce__(self):
            return Path.touch, (left,)

    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(Opened()))
    with pytest.raises(DataError, match="the files of 'cora' are not the published ones"):
        load_graph("cora", tmp_path)
    assert not left.exists()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"width": 40}, r"dblp.npz: is not the published file of 'dblp' (40 features instead of 1639"),
        ({"labels": (0, 4, 1)}, "label of node 1 is 4; allowed: 0 to 3"),
    ],
)
def test_damaged_arrays_are_refused(tmp_path, change, message):
    with pytest.raises(DataError, match=re.escape(message)):
        load_graph("dblp", dblp(tmp_path, **change))


def test_facebook_goes_straight_to_sparse_rows(tmp_path):
    graph = validate(load_graph("facebook", facebook(tmp_path, features={"0": [5, 9, 5], "1": [4713]})))
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.shape == (22_470, 4_714)
    assert graph.x.col_indices().tolist() == [5, 9, 4713]
    assert graph.x.values().tolist() == [1.0, 1.0, 1.0]
    assert graph.y[:5].tolist() == [0, 1, 2, 3, -1]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.schema.notes[:2] == ("merged 1 repeated feature entry", "removed 1 self-loop")


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"edges": [(0, 1), (0, 22_470)]}, "musae_facebook_edges.csv, line 3: id_2 is '22470'; allowed: 0 to 22469"),
        ({"features": {"0": [4714]}}, "musae_facebook_features.json: feature 4714 is listed; allowed: 0 to 4713"),
        ({"features": {"x": [1]}}, "musae_facebook_features.json: is not a json object of feature lists"),
        ({"labels": ["company", "village"]}, "musae_facebook_target.csv, line 3: page_type is 'village'; allowed:"),
    ],
)
def test_damaged_published_files_are_refused(tmp_path, parts, message):
    with pytest.raises(DataError, match=re.escape(message)):
        load_graph("facebook", facebook(tmp_path, **parts))
    facebook(tmp_path)
    (tmp_path / "musae/facebook/musae_facebook_edges.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"edges.csv: cannot be read .*allowed: columns id_1, id_2"):
        load_graph("facebook", tmp_path)


def test_facebook_declares_the_same_whatever_the_data(tmp_path):
    """Checklist items 5 to 7: the only node of a class goes, features and edges change; nothing declared moves."""
    schema = load_graph("facebook", facebook(tmp_path / "a")).schema
    changed = facebook(tmp_path / "b", edges=[(0, 1)], features={}, labels=["company"])
    other = load_graph("facebook", changed).schema
    for field in ("name", "dimension", "low", "high", "classes", "directed", "private", "source"):
        assert getattr(schema, field) == getattr(other, field)


def test_lastfm_keeps_the_ten_published_classes(tmp_path):
    graph = validate(load_graph("lastfm", lastfm(tmp_path, [17, 1, 0, 3])))
    assert graph.num_nodes == 3  # node 1 has a country that is left out
    assert graph.schema.classes == ("0", "3", "5", "6", "8", "10", "14", "15", "16", "17")
    assert graph.y.tolist() == [9, 0, 1]
    assert graph.x.shape == (3, 7_842)
    assert graph.edge_index.tolist() == [[1, 2], [2, 1]]
    assert graph.schema.notes[0].startswith("kept the 3 nodes of the ten published classes")
    # Whoever has them: classes do not depend on how many nodes have one.
    assert load_graph("lastfm", lastfm(tmp_path / "b", [1, 5])).schema.classes == graph.schema.classes


def test_npz_arrays_are_read_as_pyg_reads_them(tmp_path):
    graph = validate(load_graph("dblp", dblp(tmp_path)))
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.values().tolist() == [1.0, 1.0]
    assert graph.y.tolist() == [0, 3, 1]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graph.schema.notes[0] == "set 1 positive feature value to 1, as PyG's reader does"


def test_citeseer_is_cut_to_its_largest_component(tmp_path, monkeypatch):
    citeseer(tmp_path)
    graph = validate(load_graph("citeseer-lcc", tmp_path))
    assert graph.y.tolist() == [0, 2, 3]  # nodes 1, 3 and 4: each link is listed by one end
    assert graph.x.col_indices().tolist() == [7, 0, 3702]
    assert graph.edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]]
    assert graph.schema.classes == ("AI", "Agents", "DB", "HCI", "IR", "ML")
    assert graph.schema.notes[0] == "kept the largest component: 3 of 5 nodes"
    # It is fetched uncut, and kept whole.
    urls = served(monkeypatch, citeseer(tmp_path / "made").read_bytes())
    assert load_graph("citeseer-lcc", tmp_path / "root").num_nodes == 3
    assert urls == ["https://github.com/shchur/gnn-benchmark/raw/master/data/npz/citeseer.npz"]


def test_multi_hot_features_have_a_range_and_embedded_ones_are_clipped_to_a_fixed_one(tmp_path):
    values = np.zeros((2, 3170), dtype=np.uint8)
    values[1, 7] = 1
    graph = validate(load_graph("twitch-de", twitch(tmp_path, values)))
    assert graph.x.layout == torch.sparse_csr and (graph.schema.low, graph.schema.high) == (0.0, 1.0)
    values = np.full((2, 128), 0.5)
    values[0, 0] = 9.0
    graph = validate(load_graph("twitch-de", twitch(tmp_path, values)))
    assert (graph.schema.low, graph.schema.high, float(graph.x.max())) == (-4.0, 4.0, 4.0)
    assert "clipped 1 feature value to -4..4" in graph.schema.notes
    assert "no published bound" in graph.schema.source
