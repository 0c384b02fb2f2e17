"""``graphveil studio``: a local page to choose data, trust and budget, to run, watch and compare."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from graphveil.cli.base import options
from graphveil.cli.base.console import complain, emit
from graphveil.cli.base.tables import described

Root = Annotated[Path, typer.Argument(metavar="ROOT", help="Folder for data and runs; the page sees nothing else.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")]
Host = Annotated[str, typer.Option(help="Address to listen at; any but this machine's own needs TLS.")]
Names = Annotated[
    list[str] | None,
    typer.Option("--host-name", metavar="NAME", help="Host name under which the page is opened; repeatable."),
]
Certificate = Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate, PEM.")]
CertificateKey = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, PEM.")]
JobsAtOnce = Annotated[int, typer.Option("--jobs", min=1, max=64, help="Jobs that run at once; others wait.")]
Memory = Annotated[int, typer.Option("--memory", min=256, metavar="MB", help="Memory of one job.")]
JobThreads = Annotated[int, typer.Option("--threads", min=1, help="CPU threads of one job.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the link.")]


def studio(
    root: Root = Path(),
    port: Port = 8750,
    host: Host = "127.0.0.1",
    names: Names = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    data_root: options.DataRoot = None,
    jobs: JobsAtOnce = 1,
    memory: Memory = 4096,
    threads: JobThreads = 2,
    no_browser: NoBrowser = False,
    as_json: options.Json = False,
) -> None:
    """Open a local page to choose data, trust and budget, to run, watch and compare; Ctrl-C ends it.

    Everything that it does is a command, and ends in files below ROOT. The link works once; jobs go on without the
    page.
    """
    from graphveil.studio.serving import require_extra, serve

    require_extra()
    from graphveil.collection.service.serving import Place
    from graphveil.studio.jobs import Limits

    def started(answer: dict[str, object]) -> None:
        url = str(answer["url"])
        # First and unbroken: a link that a narrow terminal breaks cannot be copied.
        emit(answer, as_json=as_json, screen=lambda: described({"folder": answer["folder"]}), first=url)
        # Now, because the command does not end and a script waits for the link.
        sys.stdout.flush()
        if not (no_browser or as_json) and not webbrowser.open(Path(str(answer["opens"])).as_uri()):
            complain("no browser could be opened: open the link yourself")

    place = Place(host, port, certificate, certificate_key, names=tuple(names or ()))
    limits = Limits(jobs=jobs, memory_mb=memory, threads=threads)
    serve(root, place, limits, None if data_root is None else data_root.absolute(), started)
