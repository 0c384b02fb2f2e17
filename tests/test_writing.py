"""Files and folders are written whole or not at all, on disks that refuse, and beside processes that are killed."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphveil.errors import WriteError
from graphveil.files import writing
from tests.waiting import in_threads


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """The system refuses to let any file grow beyond `size` bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_an_own_folder_is_closed_from_before_its_first_file(tmp_path: Path) -> None:
    with writing.new_folder(tmp_path / "own", owner_only=True) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_file_that_does_not_fit_leaves_the_old_one_and_one_error_with_the_path(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    writing.write_bytes(file, b"old")
    with files_of_at_most(1000), pytest.raises(WriteError, match=r"a\.bin: cannot be written \(File too large\)"):
        writing.write_bytes(file, bytes(100_000))
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_folder_that_does_not_fit_is_gone_with_the_parents_made_for_it(tmp_path: Path) -> None:
    with (
        files_of_at_most(1000),
        pytest.raises(WriteError, match=r"deep/run/big: cannot be written") as refusal,
        writing.new_folder(tmp_path / "deep" / "run") as folder,
    ):
        writing.write_bytes(folder / "small", b"1")
        writing.write_bytes(folder / "big", bytes(2000))
    assert ".partial" not in str(refusal.value)
    assert names(tmp_path) == []


def test_what_a_rust_library_says_of_the_disk_is_the_same_error(tmp_path: Path) -> None:
    import polars

    table = polars.DataFrame({"a": range(100_000)})
    for write in (table.write_csv, table.write_parquet):
        with (
            files_of_at_most(1000),
            pytest.raises(WriteError, match=r"x: cannot be written"),
            writing.whole_file(tmp_path / "x") as file,
        ):
            write(file)
    assert names(tmp_path) == []


def test_errors_of_the_program_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), writing.whole_file(tmp_path / "x"):
        _ = 1 / 0
    assert names(tmp_path) == []


def test_room_is_there_or_refused_before_anything_else_and_held_until_released(tmp_path: Path) -> None:
    with (
        files_of_at_most(1 << 20),
        pytest.raises(WriteError, match=r"run: .*4\.0 MB are needed there; free space"),
        writing.room_for(tmp_path / "runs" / "run", 4_000_000),
    ):
        pytest.fail("was begun")
    assert names(tmp_path) == []
    with writing.room_for(tmp_path / "runs" / "run", 4_000_000) as room:
        reserved = list((tmp_path / "runs").iterdir())
        assert [file.stat().st_blocks * 512 >= 4_000_000 for file in reserved] == [True]
        room.release()
        assert names(tmp_path / "runs") == []
        with writing.new_folder(tmp_path / "runs" / "run") as folder:
            writing.write_text(folder / "a", "1")
    assert names(tmp_path / "runs") == ["run"]


@pytest.mark.parametrize("kind", [KeyError, ConnectionError])
def test_an_error_in_a_room_is_not_one_of_the_disk_and_the_parents_made_for_it_go(
    kind: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(kind), writing.room_for(tmp_path / "runs" / "run", 10):
        raise kind
    assert names(tmp_path) == []


def test_names_that_the_file_system_refuses_and_folders_below_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="cannot be written"), writing.new_folder(tmp_path / ("x" * 300)):
        pytest.fail("was made")
    with pytest.raises(WriteError, match="cannot be written"):
        writing.write_text(tmp_path / ("x" * 300), "1")
    writing.write_text(tmp_path / ("x" * 250), "1")
    assert names(tmp_path) == ["x" * 250]
    (tmp_path / "file").write_text("1")
    with pytest.raises(WriteError, match="cannot write in"), writing.new_folder(tmp_path / "file" / "run"):
        pytest.fail("was made")
    with pytest.raises(WriteError, match="Not a directory"):
        writing.write_text(tmp_path / "file" / "x", "1")


KILLED = """
import sys, time
from pathlib import Path
from graphveil.files import writing
with writing.new_folder(Path(sys.argv[1]) / "run") as folder:
    (folder / "half").write_text("1")
    with writing.room_for(Path(sys.argv[1]) / "other", 1000):
        print("ready", flush=True)
        time.sleep(600)
"""


def test_what_a_killed_process_left_goes_at_the_next_start_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    began = [
        subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for process in began:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        assert len(names(tmp_path)) == 4
        began[0].send_signal(signal.SIGKILL)
        began[0].wait()
        assert len(names(tmp_path)) == 4
        with writing.new_folder(tmp_path / "next") as folder:
            writing.write_text(folder / "a", "1")
        left = names(tmp_path)
        assert len(left) == 3
        assert all(name == "next" or f"partial-{began[1].pid}-" in name for name in left)
    finally:
        for process in began:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    writing.sweep(tmp_path)
    assert names(tmp_path) == ["next"]


def test_names_of_other_programs_stay(tmp_path: Path) -> None:
    (tmp_path / ".mine.partial-work").mkdir()
    writing.sweep(tmp_path)
    assert names(tmp_path) == [".mine.partial-work"]


def test_writers_of_one_file_side_by_side_do_not_remove_each_other(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def write(text: str) -> None:
        try:
            for _ in range(30):
                writing.write_text(tmp_path / "x", text)
        except BaseException as error:
            failed.append(error)

    with in_threads(write, [str(n) * 1000 for n in range(4)]):
        pass
    assert not failed
    assert (tmp_path / "x").read_text() in {str(n) * 1000 for n in range(4)}
    assert names(tmp_path) == ["x"]
