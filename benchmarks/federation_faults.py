"""Faults of a federation on a slow line: does the run end right, or stop and say which party?

    python benchmarks/federation_faults.py --times 30 --partition 60

Three processes of the command line, mutual TLS, every byte through `slow_line`; faults inside a process are planted by
`faulty_party`.  A run has one outcome:

    ended right      all parties end; at epsilon inf probabilities are as undisturbed but for `_EQUAL`; all logs
                     fit the agreement and each other (`federation verify`), so nothing was published under two names
    stopped clear    within the patience each party ends with one line of its own, and a line names a party at fault;
                     started again without the fault, the run ends right
    wrong            anything else; each has a line below the table

What tests show of the same faults is named beside them and not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from pathlib import Path

from faulty_party import FRAMES
from federation_line import NAMES, environment, free_ports
from graphveil.federation.transport.line import Line
from graphveil.reports.federation.log import TRANSCRIPT
from graphveil.reports.federation.verify import verify_log
from slow_line import SlowLine
from timing import processor

RIGHT, STOPPED, WRONG = "ended right", "stopped clear", "wrong"
#: How far a probability may be from that of an undisturbed run at epsilon inf.  Sums are rounded at random: two
#: undisturbed runs of "shared-linear" were 0.026 apart, up to 8% of their classes differed, after kills 0.029 and 10%.
_EQUAL = 0.05
#: Seconds for processes to start and end, on a loaded machine.
_MARGIN, _LONGEST = 20.0, 300.0
#: Messages between two kills at most, and how often a kill waits for any: else it meets a process that starts.
_FAR, _STARTED = 60, 0.8
_SLOW = Line(64e3, 0.05)
#: What tests show: fault -> where.
TESTED = {
    "a frame replayed, reordered, damaged or cut, at the mailbox": "federation/transport/test_mailbox.py, test_wire.py",
    "bytes that are no frame, under a valid certificate": "federation/transport/test_links.py",
    "another certificate, none, another agreement": "federation/transport/test_links.py",
    "a slow reader's memory; parties that all send first": "federation/transport/test_mailbox.py",
    "kills between rounds, cut streams, lost checkpoints": "federation/transport/test_session.py, test_party.py",
    "damaged checkpoints, two processes of one party": "federation/core/test_checkpoints.py",
    "a round that runs again under other data": "federation/test_resumes.py",
    "a party's own expired certificate": "federation/crypto/test_keys.py",
}


@dataclass(frozen=True)
class Setting:
    """What all runs share, and by mode the predictions of the first undisturbed one."""

    folder: Path
    nodes: int
    rounds: int
    line: Line
    patience: float
    partition: float
    disks: int
    reference: dict[str, dict[str, list[float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How one run ended, and in words why if it is wrong."""

    fault: str
    mode: str
    result: str
    times: int = 1
    why: str = ""
    killed: Counter[str] = field(default_factory=Counter)


class Wrong(Exception):
    """A run that neither ended right nor stopped clear."""


class Party:
    """One party's process, started as often as it takes.

    Args:
        words: of the command line, after `federation`.
    """

    def __init__(self, name: str, words: Sequence[object]) -> None:
        self.name, self._words, self._lines = name, [str(word) for word in words], [""]
        self.process: subprocess.Popen[str] | None = None

    def start(self, fault: str = "right", patience: float = 60.0) -> None:
        """Start the process with a fault in it."""
        words = [sys.executable, str(Path(__file__).with_name("faulty_party.py")), fault, "federation", *self._words]
        # Through a pipe: a file would be a part of a full disk.
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen([*words, "--patience", str(patience)], env=environment(), **output)
        self._lines = [""]
        self._reader = threading.Thread(target=self._lines.extend, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """End the process without a word."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._reader.join()

    @property
    def over(self) -> bool:
        return self.process is not None and self.process.poll() is not None and not self._reader.is_alive()

    @property
    def last(self) -> str:
        return self._lines[-1].strip()

    @property
    def error(self) -> str:
        """The one line with which it ended; "" if it ended in any other way."""
        lines = [line.strip() for line in self._lines if line.startswith(("error: ", "internal error", "Traceback"))]
        return lines[0] if len(lines) == 1 and lines[0].startswith("error: ") else ""


class Run:
    """Three parties on a line of their own."""

    def __init__(self, setting: Setting, mode: str, epsilon: str, proxy: SlowLine, folder: Path) -> None:
        self.setting, self.mode, self.epsilon, self.proxy, self.folder = setting, mode, epsilon, proxy, folder
        self.killed: Counter[str] = Counter()
        self.ports: dict[str, int] = {}
        self.parties: dict[str, Party] = {}

    def start(self, patience: float | None = None, **faults: str) -> None:
        """Start all parties; keywords are faults of processes, by name."""
        for name, party in self.parties.items():
            party.start(faults.get(name, "right"), patience or self.setting.patience)

    def round(self) -> int:
        """Return the last round that the label holder has finished, -1 before the first status."""
        try:
            status = json.loads((self.folder / "run" / "holder1" / "status.json").read_text())
        except (OSError, ValueError):
            return -1
        return int(status["round"]) if status["state"] == "running" else -1

    def until(self, ready: Callable[[], bool], what: str, seconds: float = _LONGEST) -> None:
        """Wait, or Wrong."""
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise Wrong(f"not {what} within {seconds:.0f} s: {self.words()}")
            time.sleep(0.02)

    def until_round(self, round: int) -> None:
        """Wait until a round is finished, or a party has ended."""
        self.until(lambda: self.round() >= round or self.any_over(), f"at round {round}")

    def logged(self) -> int:
        """Return how many messages the label holder has logged."""
        file = self.folder / "run" / "holder1" / TRANSCRIPT
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def any_over(self) -> bool:
        return any(party.over for party in self.parties.values())

    def all_over(self) -> bool:
        return all(party.over for party in self.parties.values())

    def words(self) -> str:
        """Return the last line of each party."""
        return "; ".join(f"[{name}] {party.last}" for name, party in self.parties.items())

    def end_right(self) -> str:
        """Wait for the end and judge it."""
        self.until(lambda: self.all_over() or bool(self.failed()), "ended")
        if self.failed():
            time.sleep(1)
            raise Wrong(f"{', '.join(self.failed())} failed: {self.words()}")
        self.verify()
        if self.epsilon == "inf":
            self.compare()
        return RIGHT

    def failed(self) -> list[str]:
        return [name for name, party in self.parties.items() if party.over and party.process.returncode]

    def end(self, *named: str, within: float) -> str:
        """Wait for the end: right, or all stopped within some seconds, and another party names one of `named`."""
        self.until(lambda: bool(self.failed()) or self.all_over(), "ended")
        if not self.failed():
            return self.end_right()
        self.until(self.all_over, "all stopped", within)
        errors = {name: party.error for name, party in self.parties.items()}
        # Who had all it needs before another one failed has ended right; who was killed says nothing.
        if silent := [name for name in self.failed() if not errors[name] and name not in self.killed]:
            raise Wrong(f"{', '.join(silent)} stopped without a line: {self.words()}")
        if not any(name in line for who, line in errors.items() for name in named if name != who):
            raise Wrong(f"nobody names {' or '.join(named)}: {self.words()}")
        return STOPPED

    def resume(self) -> str:
        """Start all again without a fault, to the right end."""
        for party in self.parties.values():
            party.kill()
        self.proxy.now.clear()
        self.start()
        self.end_right()
        return STOPPED

    def verify(self) -> None:
        """Hold all logs against the agreement and against each other."""
        run = self.folder / "run"
        for name, peer in permutations(NAMES, 2):
            if faults := verify_log(run / name, run / peer / TRANSCRIPT)["faults"]:
                raise Wrong(f"verify {name} {peer}: {'; '.join(faults)}")

    def compare(self) -> None:
        """Hold the label holder's probabilities against those of the undisturbed run of this mode."""
        probabilities = self.probabilities()
        reference = self.setting.reference.setdefault(self.mode, probabilities)
        furthest = max(abs(p - q) for key in reference for p, q in zip(probabilities[key], reference[key], strict=True))
        if furthest > _EQUAL:
            raise Wrong(f"a probability is {furthest:.3f} away from that of an undisturbed run")

    def probabilities(self) -> dict[str, list[float]]:
        """Return the label holder's predictions by id: the probability of each class."""
        with (self.folder / "run" / "holder1" / "predictions.csv").open() as file:
            rows = list(csv.DictReader(file))
        return {row["id"]: [float(value) for key, value in row.items() if key.startswith("p_")] for row in rows}


@contextmanager
def running(setting: Setting, mode: str, epsilon: str, init_fault: str = "right") -> Iterator[Run]:
    """Give a run whose parties have folders and have not started; end its processes afterwards."""
    ports = free_ports(2 * len(NAMES))
    behind = dict(zip(NAMES, ports[len(NAMES) :], strict=True))
    pairs = dict(zip(ports, behind.values(), strict=False))
    with tempfile.TemporaryDirectory(dir=setting.folder) as place, SlowLine(setting.line, pairs) as proxy:
        run = Run(setting, mode, epsilon, proxy, Path(place))
        run.ports = dict(zip(NAMES, ports, strict=False))
        chosen = {"mode": mode, "epsilon": epsilon, "width": 8, "hops": 2, "dropout": 0, "epochs": setting.rounds}
        typed = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
        parts = setting.folder / "parts"
        command("init", "--from", parts, "--out", run.folder / "run", "--port", ports[0], *typed, fault=init_fault)
        for name in NAMES:
            data = [] if name == "server" else [parts / name]
            listen = ("--listen", f"127.0.0.1:{behind[name]}")
            words = ("serve" if name == "server" else "join", run.folder / "run" / name, *data, *listen)
            run.parties[name] = Party(name, words)
        try:
            yield run
        finally:
            for party in run.parties.values():
                party.kill()


def command(*words: object, fault: str = "right") -> None:
    """Run a command of the federation to its end."""
    typed = [sys.executable, str(Path(__file__).with_name("faulty_party.py")), fault, "federation", *map(str, words)]
    subprocess.run(typed, env=environment(), check=True, stdout=subprocess.DEVNULL)


def undisturbed(run: Run, rng: random.Random) -> str:
    """Run without a fault."""
    run.start()
    return run.end_right()


def kills(run: Run, rng: random.Random, *, times: int) -> str:
    """Kill the parties in turn until the run has ended: in the middle of any message, or while a process starts.

    Moments are counted in messages of the label holder since the last kill, so that a loaded machine has the same.
    """
    run.start()
    first = rng.randrange(len(NAMES))
    for number in range(times + 1):
        more = run.logged() + (rng.randrange(_FAR) if rng.random() < _STARTED else 0)
        run.until(partial(lambda more: run.logged() >= more or run.any_over(), more), f"{more} messages further")
        time.sleep(rng.uniform(0, 0.5))
        if run.any_over() or number == times:
            break
        party = run.parties[NAMES[(first + number) % len(NAMES)]]
        party.kill()
        run.killed[party.name] += 1
        time.sleep(rng.uniform(0, 1))
        party.start(patience=run.setting.patience)
    # Who is killed when the others have left waits in vain, and all start once more.
    ended = run.end(*NAMES, within=run.setting.patience + _MARGIN)
    return ended if ended == RIGHT else run.resume()


def stays_away(run: Run, rng: random.Random, *, who: str) -> str:
    """Kill a party in the middle of any message and start it again when the others have stopped."""
    run.start()
    messages = rng.randrange(_FAR)
    run.until(lambda: run.logged() >= messages or run.any_over(), f"{messages} messages further")
    time.sleep(rng.uniform(0, 0.5))
    run.parties[who].kill()
    run.killed[who] += 1
    ended = run.end(who, within=run.setting.patience + _MARGIN)
    return ended if ended == RIGHT else run.resume()


def partition(run: Run, rng: random.Random, *, who: str, patience: float) -> str:
    """Let nothing pass that was sent to or from a party's listener, for the length of a partition."""
    run.start(patience)
    run.until_round(rng.randrange(1, run.setting.rounds // 2))
    began, ways = time.monotonic(), [(run.ports[who], towards) for towards in (True, False)]
    run.proxy.now.update(dict.fromkeys(ways))
    longer = patience < run.setting.partition
    while time.monotonic() < began + run.setting.partition and not run.all_over():
        time.sleep(0.1)
    if longer:  # the line stays cut: all must see it by themselves
        ended = run.end(*NAMES, within=patience + _MARGIN)
        return ended if ended == RIGHT else run.resume()
    run.proxy.now.clear()
    return run.end_right()


def slow_reader(run: Run, rng: random.Random, *, who: str, towards: bool, seconds: float = 8.0) -> str:
    """Carry one direction at 64 kbit/s for some seconds."""
    run.start()
    run.until_round(rng.randrange(1, run.setting.rounds // 2))
    run.proxy.now[run.ports[who], towards] = _SLOW
    time.sleep(seconds)
    run.proxy.now.clear()
    return run.end_right()


def wrong_frame(run: Run, rng: random.Random, *, kind: str) -> str:
    """Send one wrong frame under a valid certificate."""
    run.start(holder2=kind)
    ended = run.end("holder2", within=run.setting.patience + _MARGIN)
    return ended if ended == RIGHT else run.resume()


def full_disk(run: Run, rng: random.Random, *, rounds: Sequence[int]) -> str:
    """Fill a party's disk at each of these checkpoints, the parties in turn; the run goes on between them."""
    for round in rounds:
        name = NAMES[round % len(NAMES)]
        run.start(**{name: f"full-{round}"})
        if run.end(name, within=run.setting.patience + _MARGIN) != STOPPED:
            raise Wrong(f"the disk of {name} was not full at round {round}")
        if run.parties[name].error.startswith(("error: server", "error: holder")):
            raise Wrong(f"{name} says: {run.parties[name].error}")
    return run.resume()


def clock(run: Run, rng: random.Random, *, who: str, seconds: float) -> str:
    """Run with one party's clock ahead or behind; keys were made by a clock an hour ahead."""
    run.start(**{who: f"clock-{seconds:.0f}"})
    return run.end_right()


def expired(run: Run, rng: random.Random) -> str:
    """A certificate ended half an hour ago, and its owner's clock is an hour behind."""
    run.start(10.0, holder2="clock--3600")
    return run.end("holder2", within=10.0 + _MARGIN)


@dataclass(frozen=True)
class Case:
    """A fault in one run; the outcome counts as many times as the fault came."""

    setting: Setting
    fault: str
    mode: str
    epsilon: str
    do: Callable[[Run, random.Random], str]
    times: int = 1
    init: str = "right"
    number: int = 0

    def __call__(self) -> Outcome:
        name, began, why = f"{self.fault}, {self.mode}, epsilon {self.epsilon}", time.monotonic(), ""
        with running(self.setting, self.mode, self.epsilon, self.init) as run:
            try:
                result = self.do(run, random.Random(f"{name}, {self.number}"))
            except Wrong as error:
                result, why = WRONG, f"{name}: {error}"
            seconds = time.monotonic() - began
            times = run.killed.total() or self.times
            print(f"{name}: {result}, {times} times, {dict(run.killed)}, {seconds:.0f} s {why}", file=sys.stderr)
        return Outcome(self.fault, self.mode, result, times, why, run.killed)


def cases(setting: Setting, mode: str, times: int, each: int) -> Iterator[Case]:
    """Yield the runs of a mode."""
    of = partial(Case, setting)
    for number, first in enumerate(range(0, times, each)):
        few, epsilon = min(each, times - first), ("inf", "4")[number % 2]
        yield of("a party is killed", mode, epsilon, partial(kills, times=few), few, number=number)
    for number, who in enumerate(NAMES):
        epsilon = ("inf", "4")[number % 2]
        yield of("a party is killed and stays away", mode, epsilon, partial(stays_away, who=who), number=number)
    for who, cut in (("server", "from the server"), ("holder1", "between holders")):
        for patience, words in ((0.5, "longer"), (2.0, "shorter")):
            do = partial(partition, who=who, patience=patience * setting.partition)
            yield of(f"a line cut {cut}, {words} than patience", mode, "inf" if words == "shorter" else "4", do)
    last = setting.rounds + (2 if mode == "shared-linear" else 1)
    disks = range(0, last + 1, setting.disks)
    yield of("a full disk at a checkpoint", mode, "4", partial(full_disk, rounds=disks), times=len(disks))
    for who, towards in (("server", True), ("holder1", False)):
        yield of("a slow reader, 64 kbit/s", mode, "inf", partial(slow_reader, who=who, towards=towards))
    for kind in FRAMES:
        yield of(f"a frame {kind}, valid certificate", mode, "4", partial(wrong_frame, kind=kind))
    yield of("an expired certificate", mode, "4", expired, init="expired-holder2")
    for seconds in (3600.0, -3600.0):
        do = partial(clock, who="holder2", seconds=seconds)
        yield of("clocks an hour apart", mode, "inf", do, init="clock-3600")


def all_outcomes(setting: Setting, chosen: argparse.Namespace) -> list[Outcome]:
    """Run everything; the first undisturbed run of a mode comes before all others of it."""
    outcomes = []
    for mode in chosen.modes:
        outcomes.append(Case(setting, "none", mode, "inf", undisturbed)())
    share = -(-chosen.times // len(chosen.modes))
    runs = [run for mode in chosen.modes for run in cases(setting, mode, share, chosen.each)]
    runs = [run for run in runs if chosen.only in run.fault]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        outcomes += pool.map(Case.__call__, runs)
    return outcomes


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, what was measured and then what tests show."""
    yield f"| fault | times | {RIGHT} | {STOPPED} | {WRONG} |"
    yield "| --- | --- | --- | --- | --- |"
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        of = [outcome for outcome in outcomes if outcome.fault == fault]
        yield _row(fault, ((each.result, each.times) for each in of))
        for name in sorted(sum((each.killed for each in of), Counter())):
            yield _row(f"of these {name}", ((each.result, each.killed[name]) for each in of))
    yield from (f"| {fault} | tests/{where} | | | |" for fault, where in TESTED.items())


def _row(head: str, ends: Iterable[tuple[str, int]]) -> str:
    counts: Counter[str] = Counter()
    for result, times in ends:
        counts[result] += times
    return f"| {head} | {counts.total()} | {' | '.join(str(counts[result]) for result in (RIGHT, STOPPED, WRONG))} |"


def main() -> None:
    """Run all faults and print one table; exit code 1 if an outcome is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=30, help="kills in all")
    parser.add_argument("--each", type=int, default=8, help="kills of a run")
    parser.add_argument("--partition", type=float, default=60.0, metavar="S")
    parser.add_argument("--patience", type=float, default=60.0, metavar="S", help="where no line is cut")
    parser.add_argument("--disks", type=int, default=1, help="fill the disk at every so many checkpoints")
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--line", default="100Mbit/50ms")
    parser.add_argument("--modes", nargs="+", default=["shared-linear", "individual"])
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        facts = Line.parse(chosen.line), chosen.patience, chosen.partition, chosen.disks
        setting = Setting(Path(place), chosen.nodes, chosen.rounds, *facts)
        command("split", f"social-{chosen.nodes}", "--out", setting.folder / "parts")
        outcomes = all_outcomes(setting, chosen)
    print(f"{processor()}; {chosen.nodes} nodes, {chosen.rounds} rounds, {chosen.line}")
    print(*table(outcomes), *(outcome.why for outcome in outcomes if outcome.why), sep="\n")
    sys.exit(any(outcome.result == WRONG for outcome in outcomes))


if __name__ == "__main__":
    main()
