"""Files of arrays are bounded before they are unpacked, and nothing in them is run or written outside of itself."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from scipy.sparse import csc_matrix, issparse

from graphveil.errors import DataError
from graphveil.graphs import load_graph
from graphveil.graphs.named import archives, large
from graphveil.graphs.named.facebook100 import read_mat
from tests.graphs.published_made import dblp, lastfm, ppi, saint, twitch, university

MIB = 1 << 20


def peak(read: Callable[[], object]) -> int:
    """The most bytes that Python and NumPy held while a file was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bomb(file: Path, name: str, size: int) -> None:
    """An npz file with `size` zeros, about a thousandth as large."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{name}.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
        for _ in range(size // MIB):
            member.write(bytes(MIB))


def test_an_archive_that_unpacks_to_too_much_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    bomb(file, "x", 40 * MIB)
    assert file.stat().st_size < MIB
    with pytest.raises(DataError, match=r"a\.npz: unpacks to 40 MiB or more; allowed: at most 8 MiB"):
        archives.read_npz(file, ("x",), largest=8 * MIB)
    assert peak(lambda: archives.read_npz(file, ("x",), largest=8 * MIB)) < 4 * MIB
    assert archives.read_npz(file, ("x",), largest=41 * MIB)[0].shape == (40 * MIB,)


def test_an_archive_that_lies_about_its_size_gets_no_more_than_it_said(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    bomb(file, "x", 40 * MIB)
    content = file.read_bytes()
    real = struct.pack("<I", 40 * MIB + 128)
    assert content.count(real) >= 1
    file.write_bytes(content.replace(real, struct.pack("<I", 1000)))
    assert peak(lambda: archives.read_npz(file, ("x",), largest=8 * MIB)) < 4 * MIB


def header(shape: object, kind: str) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": kind, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((10**12,), "<f8"),
        ((10**18, 10**18), "|u1"),
        ((1,), "|O"),
        ((10**18,), "|V0"),
        ((10**18,), "<U0"),
        ((-5,), "|u1"),
    ],
)
def test_an_array_that_claims_more_than_its_file_holds_is_refused(tmp_path: Path, shape: object, kind: str) -> None:
    content = header(shape, kind) + bytes(16)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", content)
    assert peak(lambda: archives.read_npy(tmp_path / "a.npy")) < MIB
    assert peak(lambda: archives.read_npz(tmp_path / "a.npz", ("x",))) < MIB


def test_what_is_pickled_in_an_archive_is_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    file = twitch(tmp_path, np.zeros((2, 128))) / "pyg/Twitch/DE/raw/DE.npz"
    np.savez(file, features=np.array([Trap()], dtype=object), target=np.zeros(1), edges=np.zeros((1, 2)))
    with pytest.raises(DataError, match="an array of object, not of numbers"):
        load_graph("twitch-de", tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_gzip_is_unpacked_no_further_than_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(bytes(40 * MIB)))
    with pytest.raises(DataError, match=r"a\.csv\.gz: unpacks to [89] MiB or more"):
        archives.read_gzip(file, largest=8 * MIB)
    assert peak(lambda: archives.read_gzip(file, largest=8 * MIB)) < 32 * MIB
    assert len(archives.read_gzip(file, largest=40 * MIB)) == 40 * MIB
    for content in (b"no", file.read_bytes()[:1000]):
        file.write_bytes(content)
        with pytest.raises(DataError, match="cannot be unpacked"):
            archives.read_gzip(file)


def with_array(file: Path, **changed: np.ndarray) -> None:
    with np.load(file) as arrays:
        content = {**arrays, **changed}
    np.savez(file, **content)


@pytest.mark.parametrize(
    "changed",
    [
        {"attr_indices": np.array([2, 10**6])},
        {"attr_indptr": np.array([0, 10**6, 10**6, 10**6])},
        {"attr_indptr": np.array([0, 2, 2, 0])},
        {"adj_indptr": np.array([0, 1, 4, 0])},
        {"adj_indices": np.array([1, 0, 2, 2**32])},
        {"adj_indices": np.array([1.5, 0, 2, 2])},
        {"attr_shape": np.array([10**9, 1639])},
        {"labels": np.array([0.0, np.nan, 1.0])},
    ],
    ids=str,
)
def test_indices_outside_a_matrix_are_refused_and_nothing_is_written_there(
    tmp_path: Path, changed: dict[str, np.ndarray]
) -> None:
    with_array(dblp(tmp_path) / "pyg/CitationFull/dblp/raw/dblp.npz", **changed)
    with pytest.raises(DataError):
        load_graph("dblp", tmp_path)


def test_ends_of_edges_that_fewer_bits_would_change_are_refused(tmp_path: Path) -> None:
    """2^32 as 32 bits would be node 0."""
    file = twitch(tmp_path, np.zeros((2, 128))) / "pyg/Twitch/DE/raw/DE.npz"
    for edges in ([[0, 2**32]], [[0.5, 1.0]], [[0, -1]]):
        with_array(file, edges=np.array(edges))
        with pytest.raises(DataError, match="names a node that does not exist; allowed: whole numbers, 0 to 1"):
            load_graph("twitch-de", tmp_path)


def test_rows_that_claim_many_edges_take_no_memory(tmp_path: Path) -> None:
    folder = saint(tmp_path)
    with_array(folder / "adj_full.npz", indptr=np.array([0, 10**12, 0, 0, 5]))
    assert peak(lambda: load_graph("ppi-graphsaint", tmp_path)) < MIB * 8


def test_fields_of_a_university_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    university(tmp_path, [[0.5] * 7] * 3)  # type: ignore[list-item]
    file = tmp_path / "facebook100/Made1.mat"
    savemat(file, {"A": csc_matrix((3, 3)), "local_info": np.full((3, 7), 0.5)})
    with pytest.raises(DataError, match="local_info are not whole numbers"):
        load_graph("facebook100-made1", tmp_path)
    file.write_bytes(b"MATLAB 7.3 MAT-file")
    with pytest.raises(DataError, match="is not a MATLAB 5 file"):
        load_graph("facebook100-made1", tmp_path)


@pytest.mark.parametrize(
    ("part", "value"),
    [("features", np.full((2, 128), 1e308)), ("target", np.array([np.nan, 1.0])), ("features", np.zeros(2))],
    ids=["large", "nan", "flat"],
)
def test_numbers_that_no_cast_can_hold_are_no_fault(tmp_path: Path, part: str, value: np.ndarray) -> None:
    with_array(twitch(tmp_path, np.zeros((2, 128))) / "pyg/Twitch/DE/raw/DE.npz", **{part: value})
    try:
        assert float(load_graph("twitch-de", tmp_path).x.max()) == 4.0
    except DataError as error:
        assert "twitch-de" in str(error)


def test_numbers_too_large_for_any_array_and_features_in_one_row_are_no_fault(tmp_path: Path) -> None:
    """Polars reads it as 128 bits, which NumPy does not have."""
    for name in large.ARXIV_FILES:
        file = tmp_path / "ogb/ogbn_arxiv" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(b"9" * 30))
    with pytest.raises(DataError, match="the files of 'ogbn-arxiv' cannot be read"):
        load_graph("ogbn-arxiv", tmp_path)
    lastfm(tmp_path, [17, 1, 0, 3], features={"0": [10**30]})
    with pytest.raises(DataError, match="'lastfm'"):
        load_graph("lastfm", tmp_path)
    ppi(tmp_path, np.uint8)
    np.save(tmp_path / "pyg/PPI/raw/train_feats.npy", np.zeros(3, dtype=np.uint8))
    with pytest.raises(DataError, match="the files of 'ppi' cannot be read"):
        load_graph("ppi", tmp_path)


# ---- MATLAB files: numbers come back as SciPy wrote them, and what claims more than it holds is refused ----


KINDS = [np.uint8, np.int16, np.int32, np.float32, np.float64]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 6), st.integers(0, 5), st.sampled_from(KINDS), st.booleans(), st.integers(0, 99))
def test_matrices_come_back_dense_and_sparse(
    tmp_path: Path, rows: int, columns: int, kind: type, packed: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 100, (rows, columns)).astype(kind)
    thin = csc_matrix(values.astype(np.float64) * (rng.random((rows, columns)) < 0.4))
    file = tmp_path / "made.mat"
    savemat(file, {"A": thin, "info": values, "said": "a text"}, do_compression=packed)
    matrices = read_mat(file)
    assert issparse(matrices["A"]) and (matrices["A"].toarray() == thin.toarray()).all()
    assert matrices["info"].shape == values.shape and (matrices["info"] == values).all()
    assert "said" not in matrices, "texts, cells and structures are passed over"


@pytest.mark.parametrize("keep", [0, 128, 136, 200, 300])
def test_a_file_that_ends_early_is_refused_by_name(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "made.mat"
    savemat(file, {"A": csc_matrix(np.eye(6)), "info": np.arange(60.0).reshape(6, 10)})
    whole = file.read_bytes()
    assert len(whole) > keep
    file.write_bytes(whole[:keep])
    try:
        matrices = read_mat(file)
    except DataError as error:
        assert str(file) in str(error) and "\n" not in str(error)
    else:
        assert not matrices, "nothing is made of half a matrix"


def test_every_single_damage_is_read_or_refused(tmp_path: Path) -> None:
    """Nothing gets past the reader as another exception, nor makes more numbers than the file has bytes.

    SciPy's own reader ends the whole process at some of these words.
    """
    file = tmp_path / "made.mat"
    savemat(file, {"A": csc_matrix(np.eye(3)), "info": np.arange(6, dtype=np.int32).reshape(2, 3)})
    whole, refused = file.read_bytes(), 0
    damages = [(place, bytes([whole[place] ^ 0x5A])) for place in range(124, len(whole))]
    damages += [(place, struct.pack("<i", odd)) for place in range(128, len(whole), 4) for odd in (-1, 2**31 - 1)]
    for place, odd in damages:
        file.write_bytes(whole[:place] + odd + whole[place + len(odd) :])
        try:
            matrices = read_mat(file)
        except DataError:
            refused += 1
        else:
            assert all(value.size <= len(whole) for value in matrices.values())
    assert refused > 50


def test_a_file_that_unpacks_to_too_much_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    start = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    packed = zlib.compress(bytes(40 << 20))
    file.write_bytes(start + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(DataError, match=r"a\.mat: is damaged \(it unpacks to 8 MiB or more"):
        read_mat(file, largest=8 << 20)
    assert peak(lambda: read_mat(file, largest=8 << 20)) < 24 << 20
