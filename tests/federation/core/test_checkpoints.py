"""Checkpoints: what was saved comes back, for its owner alone, and what is damaged is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphveil.errors import InputError, ModelFileError
from graphveil.federation.core import checkpoints
from graphveil.federation.core.checkpoints import Checkpoints

RUN = "ab" * 32


def state(value: float = 1.0) -> dict[str, torch.Tensor]:
    return {"w": torch.full((3, 2), value), "empty": torch.zeros(0, 4), "shares": torch.arange(5)}


def test_states_come_back_and_the_last_three_are_kept(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    assert store.rounds() == []
    for round in range(6):
        store.save(round, state(round))
    assert store.rounds() == [3, 4, 5]
    loaded = store.load(4)
    assert set(loaded) == {"w", "empty", "shares"}
    assert all(torch.equal(loaded[name], state(4)[name]) for name in loaded)


def test_everything_is_the_owners_alone(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    store.save(1, state() | {"large": torch.zeros(1 << 18)})
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    files = list((tmp_path / "c").iterdir())
    assert len(files) == 3  # the round, the large tensor, the lock
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)


def test_large_tensors_that_stay_are_written_once_and_tidied_away(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    stays, changes = torch.randn(1 << 18), torch.zeros(1 << 18)
    for round in range(1, 6):
        changes += 1  # in place: it is written again
        store.save(round, state(round) | {"stays": stays, "changes": changes})
    files = list((tmp_path / "c").glob("*.kept"))
    assert len(files) == 1 + 3
    store.close()
    again = Checkpoints(tmp_path / "c", RUN)
    assert torch.equal(again.load(3)["changes"], changes - 2)
    loaded = again.load(5)
    assert torch.equal(loaded["stays"], stays) and torch.equal(loaded["changes"], changes)
    again.save(6, dict(loaded))
    assert len(list((tmp_path / "c").glob("*.kept"))) <= 4


def test_parts_of_an_alignment_outlast_a_process_and_end_with_round_1(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    store.alignment["own-0"], store.alignment["start"] = torch.arange(4), torch.zeros(2)
    store.close()
    store = Checkpoints(tmp_path / "c", RUN)
    store.save(0, state())
    assert torch.equal(store.alignment["own-0"], torch.arange(4)) and sorted(store.alignment) == ["own-0", "start"]
    files = sorted((tmp_path / "c").glob("*.aligning"))
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 2
    files[0].write_bytes(files[0].read_bytes()[:-1])
    assert store.alignment.get("own-0") is None and "start" in store.alignment  # damaged: computed again
    store.close()
    other = Checkpoints(tmp_path / "c", "cd" * 32)
    other.save(1, state())
    assert len(other.alignment) == 0 and files[1].exists()
    other.close()
    Checkpoints(tmp_path / "c", RUN).save(1, state())
    assert not files[1].exists()


@pytest.mark.parametrize("suffix", ["checkpoint", "kept"])
@pytest.mark.parametrize("damage", ["bit", "short", "empty", "gone"])
def test_damage_is_refused_by_name(suffix: str, damage: str, tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    store.save(3, state() | {"large": torch.zeros(1 << 18)})
    (file,) = (tmp_path / "c").glob(f"*.{suffix}")
    data = bytearray(file.read_bytes())
    if damage == "bit":
        data[len(data) // 2] ^= 1
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"bit": bytes(data), "short": bytes(data[:-5]), "empty": b""}[damage])
    with pytest.raises(ModelFileError, match=r"the checkpoint cannot be read: .*; restore it, or remove it") as caught:
        store.load(3)
    assert file.name in str(caught.value) and "\n" not in str(caught.value)


def test_another_agreement_and_other_files_are_not_gone_on_from(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    store.save(1, state())
    (tmp_path / "c" / f"{RUN[:16]}-x.checkpoint").write_bytes(b"")
    (tmp_path / "c" / f"{RUN[:16]}-7.partial").write_bytes(b"half")
    assert store.rounds() == [1]
    with pytest.raises(InputError, match="this party is already running"):
        Checkpoints(tmp_path / "c", RUN)
    store.close()
    assert Checkpoints(tmp_path / "c", "cd" * 32).rounds() == []


def test_a_published_round_is_not_run_again_where_numbers_may_round_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rows would be another publication; a round that has not been published may be run anywhere."""
    store = Checkpoints(tmp_path / "c", RUN)
    store.save(2, state())
    store.publish(3)
    assert set(store.load(2)) == set(state())
    monkeypatch.setattr(checkpoints, "platform_facts", lambda: "torch 9.9 on riscv64 (DEFAULT) with 3 threads")
    with pytest.raises(
        ModelFileError, match=r"made by torch .*, and this is torch 9\.9 .*round 3 .* a second time"
    ) as no:
        store.load(2)
    assert "\n" not in str(no.value) and "resume there" in str(no.value)
    store.save(3, state())
    assert set(store.load(3)) == set(state())


def test_later_rounds_are_forgotten_and_publications_are_not(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    assert store.published() == 0
    for round in range(3):
        store.save(round, state(round))
        store.publish(round + 1)
    store.remove_after(1)
    assert store.rounds() == [0, 1] and store.published() == 3
    store.remove_after(-1)
    assert store.rounds() == [] and store.published() == 3
    (file,) = (tmp_path / "c").glob("*.published")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "changed",
    [
        {"elsewhere": torch.tensor(list(b'{"large": "../x.kept"}'), dtype=torch.uint8)},
        {"elsewhere": torch.tensor(list(b"[1]"), dtype=torch.uint8)},
        {"elsewhere": torch.ones(3)},
        {"platform": torch.tensor([255], dtype=torch.uint8)},
    ],
    ids=["file of another folder", "no names", "numbers", "no text"],
)
def test_a_round_whose_seal_fits_and_whose_content_does_not_is_refused_by_name(
    changed: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    store = Checkpoints(tmp_path / "c", RUN)
    store.save(1, state())
    (file,) = (tmp_path / "c").glob("*.checkpoint")
    store._write(file, {**checkpoints._read(file), **changed})
    with pytest.raises(ModelFileError, match=r"-1\.checkpoint: the checkpoint is damaged"):
        store.load(1)


@pytest.mark.parametrize("content", [b"", b"x", b"\xff\xfe", b"-1 rows", b"1_0", b"9" * 5000, "٣".encode()])
def test_a_damaged_note_of_what_was_published_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    """Taken for round 0 it would allow a second publication."""
    store = Checkpoints(tmp_path / "c", RUN)
    store.publish(1, "rows")
    (file,) = (tmp_path / "c").glob("*.published")
    file.write_bytes(content)
    for read in (store.published, store.published_name):
        with pytest.raises(ModelFileError, match="does not name a round; restore it"):
            read()
