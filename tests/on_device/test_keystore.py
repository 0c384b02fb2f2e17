"""The secret in the platform's key store: one person, one secret, whatever becomes of the store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import null

from graphveil.device.__main__ import main
from graphveil.device.storage.home import Home
from graphveil.device.storage.ledger import DeviceLedger
from tests.on_device.conftest import Run
from tests.on_device.keystores import Clear, Forgetful, Memory
from tests.on_device.pretended import TOKEN, Pretended
from tests.on_device.signing import label, task_of

ROOT = Path(__file__).parents[2]
TASK = task_of(label())
ENROL = ("--task", TASK.hash.hex())


@pytest.fixture
def use() -> Iterator[Callable[[KeyringBackend], None]]:
    """Choose the key store of this process."""
    before = keyring.get_keyring()
    yield keyring.set_keyring
    keyring.set_keyring(before)


@pytest.fixture
def store(use: Callable[[KeyringBackend], None]) -> Memory:
    memory = Memory()
    use(memory)
    return memory


def secrets(store: Memory) -> list[str]:
    return list(store.entries.values())


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_secret_is_in_the_store_and_the_folder_holds_a_mark(
    store: Memory, run: Run, collector: Pretended, data: Path, home: Path
) -> None:
    code, out, _ = run("enrol", collector.url, TOKEN, *ENROL)
    assert code == 0 and "your secret is kept in the key store keystores Memory\n" in out
    (secret,) = secrets(store)
    assert len(bytes.fromhex(secret)) == 32 and Home(home).secret().hex() == secret
    assert run("answer", data)[0] == run("answer", data)[0] == 0 and len(set(collector.reports)) == 1
    assert secret.encode() not in everything(home) and bytes.fromhex(secret) not in everything(home)
    assert secrets(store) == [secret]


@pytest.mark.parametrize("other", [null.Keyring(), Clear(), None], ids=["none", "in the clear", "not installed"])
def test_without_a_store_it_is_in_a_file_as_before(
    other: KeyringBackend | None, use: Callable[[KeyringBackend], None], collector: Pretended, home: Path
) -> None:
    """A file of plain text is no key store, though keyring knows one; nor has keyring to be installed."""
    if other is not None:
        use(other)
    without = "import sys; sys.modules['keyring'] = None\n" if other is None else ""
    words = ["--folder", str(home), "enrol", collector.url, TOKEN, *ENROL]
    code = f"{without}from graphveil.device.__main__ import main; main({words!r})"
    if other is None:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    else:
        assert main(words) == 0
        assert not isinstance(other, Memory) or not other.entries
    assert len((home / "secret").read_bytes()) == 32


def test_a_store_that_is_gone_or_locked_is_never_replaced(
    store: Memory, use: Callable[[KeyringBackend], None], run: Run, collector: Pretended, data: Path, home: Path
) -> None:
    assert run("enrol", collector.url, TOKEN, *ENROL)[0] == 0
    mark, entries = (home / "secret").read_bytes(), dict(store.entries)
    ((name, secret),) = entries.items()

    def refused(message: str) -> None:
        for words in (("answer", data), ("show", data)):
            code, out, err = run(*words)
            assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith("keystore: ") and message in err
            assert secret not in err
        assert (home / "secret").read_bytes() == mark and not collector.reports

    store.locked = True
    refused("keystores Memory is locked or does not answer (KeyringLocked)")
    store.locked = False
    for spoilt in ({}, {name: "00" * 32}, {name: "nonsense"}):
        store.entries.clear()
        store.entries.update(spoilt)
        refused("was put into keystores Memory, and is not there")
        assert store.entries == spoilt
    use(null.Keyring())
    refused("was put into keystores Memory, and is not there")
    use(store)
    store.entries.update(entries)
    assert run("answer", data)[0] == 0 and len(collector.reports) == 1


def test_a_store_that_is_locked_or_forgets_enrols_nobody(
    store: Memory, use: Callable[[KeyringBackend], None], run: Run, collector: Pretended, home: Path
) -> None:
    """No token is spent for a secret that will not be there; and none is put in a file instead, unsaid."""
    store.locked = True
    for shelf in (store, Forgetful()):
        use(shelf)
        code, out, err = run("enrol", collector.url, TOKEN, *ENROL)
        assert (code, out) == (2, "") and err.startswith("keystore: ")
        assert not collector.enrolled and not (home / "secret").exists()
    use(store)
    store.locked = False
    assert run("enrol", collector.url, TOKEN, *ENROL)[0] == 0


def a_program(home: Path, shelf: Path, kind: str) -> subprocess.Popen[str]:
    """A device of its own that looks for its secret."""
    names = {"PYTHON_KEYRING_BACKEND": f"tests.on_device.keystores.{kind}", "TEST_SHELF": str(shelf)}
    path = os.pathsep.join((str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    lines = ("import pathlib, sys", "from graphveil.device.storage.home import Home")
    code = "\n".join((*lines, "print(Home(pathlib.Path(sys.argv[1])).secret().hex())"))
    words = [sys.executable, "-c", code, str(home)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **names, "PYTHONPATH": path})


def test_two_programs_at_once_make_one_secret(home: Path, tmp_path: Path) -> None:
    both = [a_program(home, tmp_path, "Shelf") for _ in range(2)]
    first, second = (process.communicate()[0].strip() for process in both)
    assert first == second and len(first) == 64
    (entry,) = tmp_path.glob("graphveil-device.*")
    assert entry.read_text() == first


@pytest.mark.slow
def test_a_program_that_is_killed_between_store_and_mark_has_said_nothing(home: Path, tmp_path: Path) -> None:
    """The entry is left behind and never used; the secret is that of the first run that came to its end."""
    killed = a_program(home, tmp_path, "Killed")
    assert killed.communicate()[0] == "" and killed.returncode == -9
    (orphan,) = tmp_path.glob("graphveil-device.*")
    assert not (home / "secret").exists()
    first, second = (a_program(home, tmp_path, "Shelf").communicate()[0].strip() for _ in range(2))
    assert first == second != orphan.read_text() and len(list(tmp_path.glob("graphveil-device.*"))) == 2


def test_keyring_is_loaded_where_it_is_needed_and_not_before(home: Path, tmp_path: Path) -> None:
    code = "import sys, graphveil.device.__main__; print([name for name in sys.modules if name.startswith('keyring')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    # A secret in a file asks no key store for it, now or ever.
    home.mkdir(mode=0o700)
    DeviceLedger(home / "ledger.jsonl").begin()
    (home / "limit").write_text("none")
    (home / "secret").write_bytes(bytes(32))
    assert a_program(home, tmp_path, "NoSuchStore").communicate()[0] == "00" * 32 + "\n"
