"""Files of settings and results are opened safely, whoever wrote them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from pathlib import Path

import pytest

from graphveil.errors import DataError, ModelFileError
from graphveil.files import reading


def test_text_is_read_with_and_without_a_byte_order_mark_and_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert reading.read_json(tmp_path / "a") == {"a": 1}
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    assert reading.read_toml(tmp_path / "a") == {"a": 1, "b": 2}
    (tmp_path / "a").write_text('{"a": 1}\n\n{"a": 2}\n')
    assert reading.read_json_lines(tmp_path / "a") == [{"a": 1}, {"a": 2}]
    (tmp_path / "a").write_text('{"a": 1}\n{"a":\n')
    with pytest.raises(DataError, match=r"a, line 2: is not JSON"):
        reading.read_json_lines(tmp_path / "a")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 60 + b"]" * 60, "nested too deeply"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "the key 'a' appears twice"),
        (b"NaN", "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b"1e999", "1e999 is too large a number"),
        (b"1" * 5000, "is not JSON"),
        (b"[" + b"1" * 400 + b"]", "a whole number has more than 300 digits"),
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b'{"a": 1', "is not JSON"),
        (b"{}\x00", "is not JSON"),
    ],
)
def test_json_that_says_nothing_clear_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as refusal:
        reading.read_json(file, error=ModelFileError)
    assert str(file) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("content", ["a = " + "[" * 5000, "a = " + "{a=" * 3000, ".".join("a" * 3000) + " = 1"])
def test_toml_that_nests_too_deeply_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.toml").write_text(content)
    with pytest.raises(DataError, match=r"a\.toml: (is nested too deeply|cannot be read as TOML)"):
        reading.read_toml(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("gzip", gzip.compress(b"{}")),
        ("bzip2", bz2.compress(b"{}")),
        ("xz", lzma.compress(b"{}")),
        ("zlib", zlib.compress(b"{}")),
        ("zip", b"PK\x03\x04rest"),
        ("zstd", b"\x28\xb5\x2f\xfdrest"),
    ],
    ids=["gzip", "bzip2", "xz", "zlib", "zip", "zstd"],
)
def test_compressed_content_is_refused_by_its_first_bytes(tmp_path: Path, kind: str, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match=rf"is compressed \({kind}\); unpack it first"):
        reading.read_bytes(tmp_path / "a")
    with pytest.raises(DataError, match=rf"is compressed \({kind}\); unpack it first"):
        reading.require_file(tmp_path / "a")


def test_a_file_larger_than_its_bound_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte that takes no space
    with pytest.raises(DataError, match=r"has 1,048,576\.0 MiB; allowed: at most 16 MiB"):
        reading.read_json(tmp_path / "a")
    with pytest.raises(DataError, match="at most 2 MiB"):
        reading.read_toml(tmp_path / "a")


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, message in (
        ("pipe", "is a pipe, not a file"),
        ("folder", "is a folder, not a file"),
        ("loop", "cannot be opened"),
        ("zero", "is a device, not a file"),
        ("x" * 300, "cannot be opened"),
        ("nul\x00byte", "cannot be opened"),
    ):
        with pytest.raises(DataError, match=message):
            reading.read_bytes(tmp_path / name)
