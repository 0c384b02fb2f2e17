"""``graphveil collect``: collect noisy reports from devices, from the draft of a task to a folder to train on."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.base import groups, options
from graphveil.cli.base.console import complain, emit, working
from graphveil.cli.base.tables import described
from graphveil.cli.collect import screens
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.collection.desk import Desk
    from graphveil.collection.simulation.played import Cast

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The organiser's folder, from collect init.")]
_word = partial(typer.Option, rich_help_panel="What people read")
_price = partial(typer.Option, rich_help_panel="Prices: epsilon of one report")


@dataclass(frozen=True)
class Wording:
    """What people read before they take part, and when they may."""

    organiser: Annotated[str | None, _word(help="Who collects.")] = None
    purpose: Annotated[str | None, _word(help="What the reports are for.")] = None
    contact: Annotated[str | None, _word(help="Where people can ask questions.")] = None
    opens: Annotated[str | None, _word(metavar="DAY", help="First moment, UTC, such as 2027-01-31.")] = None
    closes: Annotated[str | None, _word(metavar="DAY", help="Last moment.")] = None
    least: Annotated[int | None, _word(min=1, help="Minimum number of reports: with fewer, nothing is exported.")] = (
        None
    )


@dataclass(frozen=True)
class ReportPrices:
    """The parts of a report, each with its epsilon."""

    epsilon_x: Annotated[str | None, _price(metavar="E", help="A person's features.")] = None
    epsilon_y: Annotated[str | None, _price(metavar="E", help="A person's label.")] = None
    epsilon_a: Annotated[str | None, _price(metavar="E", help="One bit of a neighbour list.")] = None
    epsilon_d: Annotated[str | None, _price(metavar="E", help="One link in a person's degree.")] = None
    mode: Annotated[str, _price(metavar="lower|both|directed", help="Who reports a link.")] = "lower"


@dataclass(frozen=True)
class Players:
    """Simulated people: the programs they use, and how many drop out or send twice."""

    clients: Annotated[str, typer.Option(metavar="python[,js]", help="Programs that people use, in turn.")] = "python"
    js: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A JavaScript client for Node.js in place of ours.")
    ] = None
    dropouts: Annotated[float, typer.Option(min=0, max=1, help="Share of enrolled people who never answer.")] = 0.1
    retries: Annotated[float, typer.Option(min=0, max=1, help="Share of the others who send twice.")] = 0.1
    seed: Annotated[int, typer.Option(min=0, help="Fixes who does what, never the noise.")] = 0

    def cast(self, people: int | None, epochs: int = 1, changed: float = 0.0, late: float = 0.0) -> Cast:
        """Return the simulated people.

        Args:
            people, epochs, changed, late: as in `Cast`.
        """
        from graphveil.collection.simulation.phones import commands_of
        from graphveil.collection.simulation.played import Cast

        programs = commands_of(self.clients, self.js)
        return Cast(
            people, programs, dropouts=self.dropouts, retries=self.retries, seed=self.seed,
            epochs=epochs, changed=changed, late=late,
        )  # fmt: skip


def group() -> typer.Typer:
    app = typer.Typer(help="Collect noisy reports from people's own devices.")
    app.callback()(lambda: None)
    for command in (init, sign, enrol, open_, serve, status, close, export, scrub, simulate, phones):
        app.command(command.__name__.rstrip("_"))(command)
    return app


def _desk(folder: Path) -> Desk:
    from graphveil.collection.desk import Desk  # late: it loads what only a collection needs

    return Desk(folder)


@groups.spread()
def init(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")],
    wording: Wording,
    report_prices: ReportPrices,
    ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ids of the people, one per line, or a csv. Default: DATA's nodes."),
    ] = None,
    data_root: options.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Write the draft of a task; print its guarantee and plan. At a terminal, missing parts are asked for."""
    from graphveil.cli.collect.dialogue import Dialogue
    from graphveil.collection.task.declare import Prices
    from graphveil.collection.task.drafts import require_possible
    from graphveil.collection.task.planned import drafted
    from graphveil.collection.task.subject import subject_of
    from graphveil.files.outputs import new_output

    fields = {name: value for name, value in asdict(wording).items() if value is not None}
    prices = Prices(
        features=report_prices.epsilon_x,
        label=report_prices.epsilon_y,
        links=report_prices.epsilon_a,
        degree=report_prices.epsilon_d,
        mode=report_prices.mode,
    )
    # A folder in use or an unreadable graph is refused before any question.
    with new_output(out, out, say=complain) as output:
        subject = subject_of(data, data_root, ids)
        require_possible(fields, len(subject.ids))
        dialogue = None if as_json else Dialogue.here()
        if dialogue is not None:
            fields, prices = dialogue.complete(subject, fields, prices)
        answer, plan = output.write(lambda path: drafted(path, subject, fields, prices), paid=False)
    emit(answer, as_json=as_json, screen=lambda: screens.drafted(answer, plan))


def sign(
    folder: Folder,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The organiser's key. Default: a new one, made here.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="postgresql+psycopg://... Default: a SQLite file here.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Sign the task of the complete draft, for good, and create its database."""
    answer = _desk(folder).sign(key, database)
    emit(answer, as_json=as_json, screen=lambda: screens.signed(answer))


def enrol(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Csv file to write tokens to. Default: tokens.csv in FOLDER."),
    ] = None,
    tokens: Annotated[Path | None, typer.Option(metavar="FILE", help="Csv file of your own ids and tokens.")] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The collector's address for people: adds a link to each person's page."),
    ] = None,
    again: Annotated[
        str | None, typer.Option(metavar="ID", help="A new token for one person who lost theirs and has not enrolled.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Create a token for everybody that enrols them once; the database stores only its hash."""
    if again is not None:
        if out is not None or tokens is not None:
            raise InputError("--again with a file of tokens", remedy="one token is printed, and written nowhere")
        replacement = _desk(folder).replace_token(again, url)
        emit(replacement, as_json=as_json, screen=lambda: screens.replaced(replacement))
        return
    if tokens is not None and url is not None:
        raise InputError("--url with tokens of your own", remedy="a link is URL/#TOKEN.HASH: write it beside each")
    answer = _desk(folder).enrol(out, tokens, url)
    emit(answer, as_json=as_json, screen=lambda: screens.enrolled(answer, folder))


def open_(
    folder: Folder,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The organiser's key. Default: organiser.key in FOLDER.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Close enrolment for an epoch, draw its nonce and let devices report."""
    answer = _desk(folder).open(key)
    emit(answer, as_json=as_json, screen=lambda: described(answer))


def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any free one.")] = 8700,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate, PEM.")] = None,
    certificate_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, PEM.")] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="Host name by which people reach the collector; repeatable. Those of links and certificate are added.",
        ),
    ] = None,
    enrolments: Annotated[
        float,
        typer.Option(
            "--enrolments-per-second", min=0.001, help="Enrolments per second from one address, in the long run."
        ),
    ] = 1.0,
    burst: Annotated[
        float,
        typer.Option(
            "--enrolments-burst", min=1, help="Enrolments at once from one address: people behind one router."
        ),
    ] = 30.0,
    as_json: options.Json = False,
) -> None:
    """Run the collector until Ctrl-C; collect enrol, open and close work while it runs."""
    import sys

    from graphveil.collection.desk import require_extra
    from graphveil.collection.service.limits import Rate
    from graphveil.collection.service.serving import Place
    from graphveil.collection.service.serving import serve as serve_collector

    require_extra()
    place = Place(host, port, certificate, certificate_key, names=tuple(names or ()))
    # A warning only: behind a proxy that ends TLS this is right.
    if not place.is_local and certificate is None:
        complain("warning: other machines reach this address without TLS; devices refuse it: put a proxy before it")

    def started(answer: dict[str, object]) -> None:
        # A service's output goes to a log, and whoever reads the admin token there could act as the organiser.
        output = answer if sys.stdout.isatty() else {**answer, "admin": None}
        emit(output, as_json=as_json, screen=lambda: screens.serving(output))
        # Now, because the command does not end and a script waits for the address.
        sys.stdout.flush()

    serve_collector(_desk(folder), place, Rate(each_second=enrolments, burst=burst), started)


def status(folder: Folder, as_json: options.Json = False) -> None:
    """Show how many people have enrolled and answered, and what was refused."""
    answer = _desk(folder).status()
    emit(answer, as_json=as_json, screen=lambda: screens.status(answer))


def close(folder: Folder, as_json: options.Json = False) -> None:
    """Freeze the open epoch: later reports do not change it."""
    answer = _desk(folder).close()
    if not answer["order_forgotten"]:
        complain("warning: the database still tells the order of arrival; `graphveil collect serve` tries again")
    emit(answer, as_json=as_json, screen=lambda: described(answer))


def export(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")],
    most_links: Annotated[int | None, typer.Option(min=1, help="Known upper bound on the links of a person.")] = None,
    as_json: options.Json = False,
) -> None:
    """Write everybody's last report of the closed epochs into a folder to train on; name suspect reports."""
    from graphveil.files.outputs import new_output

    with new_output(out, out, say=complain) as output:
        answer = output.write(lambda path: _desk(folder).export(path, most_links), paid=False)
    emit(answer, as_json=as_json, screen=lambda: screens.exported(answer))


def scrub(
    folder: Folder,
    exported: Annotated[
        Path, typer.Argument(metavar="EXPORT", help="The export that holds the reports to delete here.")
    ],
    as_json: options.Json = False,
) -> None:
    """Delete the content of exported reports, for good, and end the collection: no epoch can be opened after it.

    The database still stores who has sent a report, so that nobody counts twice.
    """
    answer = _desk(folder).scrub(exported)
    emit(answer, as_json=as_json, screen=lambda: described(answer))


@groups.spread()
def simulate(
    folder: Folder,
    data: options.Data,
    players: Players,
    people: Annotated[int | None, typer.Option(min=1, help="People who enrol. Default: all.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="How often people are asked.")] = 1,
    changed: Annotated[float, typer.Option(min=0, max=1, help="Share whose values change from epoch to epoch.")] = 0.0,
    late: Annotated[float, typer.Option(min=0, max=1, help="Share who enrol after the first epoch.")] = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create for the export.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Try out a task: simulate its collection over this machine's network, with a graph's real values.

    The simulation has a task of its own: nothing enters FOLDER's database.
    """
    from graphveil.collection.desk import require_extra

    require_extra()
    if epochs == 1 and (changed or late):
        name = "--changed" if changed else "--late"
        raise InputError(f"{name} with a single epoch", remedy="ask several times: --epochs 2")
    from graphveil.collection.simulation.played import play
    from graphveil.files.outputs import new_output

    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(working())
        output = None if out is None else stack.enter_context(new_output(out, out, say=complain))
        answer = play(folder, data, players.cast(people, epochs, changed, late), progress, out=output)
    emit(answer, as_json=as_json, screen=lambda: screens.played(answer))


@groups.spread()
def phones(
    folder: Folder,
    data: options.Data,
    players: Players,
    url: Annotated[str, typer.Option(help="Address of a collector on this machine.")] = "http://127.0.0.1:8700",
    tokens: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of tokens that collect enrol wrote or read. Default: in FOLDER."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Rehearse with simulated phones beside your own device: one for each unused token enrols, waits and answers.

    Their reports are stored in FOLDER's collection: start another collection for real people.
    """
    from graphveil.collection.desk import require_extra

    require_extra()
    from graphveil.collection.simulation.phones import run_phones

    with working() as progress:
        answer = run_phones(folder, data, url, players.cast(None), progress, tokens)
    emit(answer, as_json=as_json, screen=lambda: described(answer))
