"""MATLAB files: numbers come back as SciPy wrote them, and what claims more than it holds is refused."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from scipy.sparse import csc_matrix, issparse

from graphveil.errors import DataError
from graphveil.graphs.named.facebook100 import read_mat
from tests.graphs.test_archives import peak

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
