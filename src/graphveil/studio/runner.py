"""A program that runs the command of a job: it sets limits, waits, and writes the exit code. Standard library alone.

    python runner.py FOLDER        FOLDER/words.json -> FOLDER/stdout, stderr, progress.jsonl, rc

It holds a lock on FOLDER/running, which contains its process id: so a studio that starts later knows it is alive.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

NICE = 5


def main(folder: Path) -> None:
    """Run the command of a folder."""
    job = json.loads((folder / "words.json").read_text(encoding="utf-8"))
    lock = os.open(folder / "running", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, str(os.getpid()).encode())
    # Disk space is taken now: the exit code must be written on a full disk too.
    code_file = folder / "rc.new"
    code_file.write_text(" " * 16, encoding="utf-8")
    # Handlers and not "ignored", which the command would inherit: it must stop, and this must outlive it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A limit of data: the address space of libraries is many times what they use.
    resource.setrlimit(resource.RLIMIT_DATA, (job["memory"], job["memory"]))
    environment = {**os.environ, **job["environment"], "GRAPHVEIL_PROGRESS": str(folder / "progress.jsonl")}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            job["command"], cwd=job["cwd"], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            pass_fds=(lock,),  # the lock lasts as long as either of them
        )  # fmt: skip
        code = process.wait()
    with code_file.open("r+", encoding="utf-8") as file:
        file.write(str(code))
    code_file.rename(folder / "rc")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
