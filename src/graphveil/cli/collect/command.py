"""``graphveil collect``: noisy reports of real devices, from a declaration to a folder to train on."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli.base import groups, options
from graphveil.cli.base.console import complain, emit, working
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.collection.simulation.played import Cast

_WORDS, _PRICES = "What people read", "Prices: epsilon of one report"
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The organiser's folder, from collect init.")]


@dataclass(frozen=True)
class Wording:
    """What people read before they take part, and when."""

    organiser: Annotated[str | None, typer.Option(help="Who asks.", rich_help_panel=_WORDS)] = None
    purpose: Annotated[str | None, typer.Option(help="What for.", rich_help_panel=_WORDS)] = None
    contact: Annotated[str | None, typer.Option(help="Where people can ask back.", rich_help_panel=_WORDS)] = None
    opens: Annotated[
        str | None, typer.Option(metavar="DAY", help="First moment, UTC, as 2027-01-31.", rich_help_panel=_WORDS)
    ] = None
    closes: Annotated[str | None, typer.Option(metavar="DAY", help="Last moment.", rich_help_panel=_WORDS)] = None
    least: Annotated[
        int | None, typer.Option(min=1, help="Reports below which nothing is exported.", rich_help_panel=_WORDS)
    ] = None


@dataclass(frozen=True)
class ReportPrices:
    """What is asked, at which price."""

    epsilon_x: Annotated[
        str | None, typer.Option("--epsilon-x", metavar="E", help="A person's features.", rich_help_panel=_PRICES)
    ] = None
    epsilon_y: Annotated[
        str | None, typer.Option("--epsilon-y", metavar="E", help="A person's label.", rich_help_panel=_PRICES)
    ] = None
    epsilon_a: Annotated[
        str | None,
        typer.Option("--epsilon-a", metavar="E", help="One bit of a neighbour list.", rich_help_panel=_PRICES),
    ] = None
    epsilon_d: Annotated[
        str | None,
        typer.Option("--epsilon-d", metavar="E", help="One link in a person's degree.", rich_help_panel=_PRICES),
    ] = None
    mode: Annotated[
        str,
        typer.Option("--mode", metavar="lower|both|directed", help="Who reports a link.", rich_help_panel=_PRICES),
    ] = "lower"


@dataclass(frozen=True)
class Players:
    """Made-up people: what they answer with, and who of them does not."""

    clients: Annotated[
        str, typer.Option("--clients", metavar="python[,js]", help="Programs that people answer with, in turn.")
    ] = "python"
    js: Annotated[
        Path | None, typer.Option("--js", metavar="FILE", help="Another client in JavaScript than ours, for Node.js.")
    ] = None
    dropouts: Annotated[
        float, typer.Option("--dropouts", min=0, max=1, help="Share of the enrolled who never answer.")
    ] = 0.1
    retries: Annotated[float, typer.Option("--retries", min=0, max=1, help="Share of the others who send twice.")] = 0.1
    seed: Annotated[int, typer.Option("--seed", min=0, help="Who does what; never the noise.")] = 0

    def cast(self, people: int | None, epochs: int = 1, changed: float = 0.0, late: float = 0.0) -> Cast:
        """Return who plays.

        Args:
            people, epochs, changed, late: as of `Cast`.
        """
        from graphveil.collection.simulation.clients import commands_of
        from graphveil.collection.simulation.played import Cast

        programs = commands_of(self.clients, self.js)
        return Cast(people, programs, self.dropouts, self.retries, self.seed, epochs, changed, late)


def group() -> typer.Typer:
    """The commands of a collection."""
    app = typer.Typer(help="Collect noisy reports from people's own devices.")
    app.callback()(lambda: None)
    for command in (init, sign, enrol, open_, serve, status, close, export, scrub, simulate, phones):
        app.command(command.__name__.rstrip("_"))(command)
    return app


@groups.spread()
def init(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")],
    wording: Wording,
    report_prices: ReportPrices,
    ids: Annotated[
        Path | None,
        typer.Option("--ids", metavar="FILE", help="Ids of the people, one a line, or a csv. Default: DATA's nodes."),
    ] = None,
    data_root: options.DataRoot = None,
    as_json: options.Json = False,
) -> None:
    """Write the draft of a task; print the guarantee and what plan says. A terminal is asked for what is missing."""
    from graphveil.cli.collect import screens as screens
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
    # Before anybody is asked, and before it is made: a used folder, or a graph that cannot be read, is told at once.
    with new_output(out, out, say=complain) as output:
        subject = subject_of(data, data_root, ids)
        require_possible(fields, len(subject.ids))
        dialogue = None if as_json else Dialogue.here()
        if dialogue is not None:
            fields, prices = dialogue.completed(subject, fields, prices)
        answer, plan = output.write(lambda path: drafted(path, subject, fields, prices), paid=False)
    emit(answer, as_json=as_json, screen=lambda: screens.drafted(answer, plan))


def sign(
    folder: Folder,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The organiser's key. Default: one made here.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="postgresql+psycopg://... Default: a SQLite file here."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Sign the task of the filled-in draft, for good, and begin its database."""
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk

    answer = Desk(folder).sign(key, database)
    emit(answer, as_json=as_json, screen=lambda: screens.signed(answer))


def enrol(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Csv file to write tokens to. Default: tokens.csv in FOLDER."),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="FILE", help="Csv file of ids and tokens that you made.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="The collector as people reach it: adds a link to the page for each."
        ),
    ] = None,
    again: Annotated[
        str | None,
        typer.Option("--again", metavar="ID", help="A new token for one person who lost theirs and has not enrolled."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Give everybody a token that enrols them once; the database keeps its hash alone."""
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk

    if again is not None:
        if out is not None or tokens is not None:
            raise InputError("--again with a file of tokens", remedy="one token is printed, and written nowhere")
        replacement = Desk(folder).replace_token(again, url)
        emit(replacement, as_json=as_json, screen=lambda: screens.replaced(replacement))
        return
    if tokens is not None and url is not None:
        raise InputError("--url with tokens of your own", remedy="a link is URL/#TOKEN.HASH: write it beside each")
    answer = Desk(folder).enrol(out, tokens, url)
    emit(answer, as_json=as_json, screen=lambda: screens.enrolled(answer))


def open_(
    folder: Folder,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="The organiser's key. Default: organiser.key in FOLDER."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Close enrolment for an epoch, draw its nonce and let devices report."""
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk

    answer = Desk(folder).open(key)
    emit(answer, as_json=as_json, screen=lambda: screens.plain(answer))


def serve(
    folder: Folder,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any that is free.")] = 8700,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="TLS certificate, PEM.")
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option("--certificate-key", metavar="FILE", help="Its key, PEM.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="Host name by which people reach it; may be repeated. Links and certificate add theirs.",
        ),
    ] = None,
    enrolments: Annotated[
        float, typer.Option("--enrolments-per-second", min=0.001, help="Of one address, in the long run.")
    ] = 1.0,
    burst: Annotated[
        float, typer.Option("--enrolments-burst", min=1, help="Of one address, at once: people behind one router.")
    ] = 30.0,
    as_json: options.Json = False,
) -> None:
    """Run the collector until Ctrl-C; enrolment, opening and closing work while it runs."""
    import sys

    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk, require_extra
    from graphveil.collection.service.serving import Place
    from graphveil.collection.service.serving import serve as serving
    from graphveil.collection.task.limits import Rate

    require_extra()
    address = Place(host, port, certificate, certificate_key, tuple(names or ()))
    # No refusal: behind a proxy that ends TLS this is how it should be.
    if not address.here and certificate is None:
        complain("warning: other machines reach this address without TLS; devices refuse it: put a proxy before it")

    def started(answer: dict[str, object]) -> None:
        # A service's output goes to a log, where whoever reads it would be the organiser from then on.
        output = answer if sys.stdout.isatty() else {**answer, "admin": None}
        emit(output, as_json=as_json, screen=lambda: screens.serving(output))
        # Now and not at the end, which does not come: a script waits for the address.
        sys.stdout.flush()

    serving(Desk(folder), address, Rate(enrolments, burst), started)


def status(folder: Folder, as_json: options.Json = False) -> None:
    """Show how many have enrolled and answered, and what was refused."""
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk

    answer = Desk(folder).status()
    emit(answer, as_json=as_json, screen=lambda: screens.status(answer))


def close(folder: Folder, as_json: options.Json = False) -> None:
    """Freeze the open epoch: what comes later changes nothing of it."""
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk

    answer = Desk(folder).close()
    if not answer["order_forgotten"]:
        complain("warning: the database still tells the order of arrival; `graphveil collect serve` tries again")
    emit(answer, as_json=as_json, screen=lambda: screens.plain(answer))


def export(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create.")],
    most_links: Annotated[
        int | None, typer.Option("--most-links", min=1, help="Links of a person that nobody exceeds, if it is known.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write everybody's last report of the closed epochs into a folder to train on; say which ones are suspect."""
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk
    from graphveil.files.outputs import new_output

    with new_output(out, out, say=complain) as output:
        answer = output.write(lambda path: Desk(folder).export(path, most_links), paid=False)
    emit(answer, as_json=as_json, screen=lambda: screens.exported(answer))


def scrub(
    folder: Folder,
    exported: Annotated[Path, typer.Argument(metavar="EXPORT", help="The export that keeps what is forgotten here.")],
    as_json: options.Json = False,
) -> None:
    """Forget what exported reports say, for good, and end the collection: no epoch can be opened after it.

    Who has sent a report stays known, so that nobody counts twice.
    """
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import Desk

    answer = Desk(folder).scrub(exported)
    emit(answer, as_json=as_json, screen=lambda: screens.plain(answer))


@groups.spread()
def simulate(
    folder: Folder,
    data: options.Data,
    players: Players,
    people: Annotated[int | None, typer.Option("--people", min=1, help="People who enrol. Default: all.")] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="How often people are asked.")] = 1,
    changed: Annotated[
        float, typer.Option("--changed", min=0, max=1, help="Share whose values change from epoch to epoch.")
    ] = 0.0,
    late: Annotated[float, typer.Option("--late", min=0, max=1, help="Share who enrol after the first epoch.")] = 0.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Folder to create for what was collected.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Try a task out: play its collection over the network on this machine, from a graph's real values.

    Under a task of its own: nothing comes into FOLDER's database.
    """
    from graphveil.cli.collect import screens as screens
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
    url: Annotated[str, typer.Option("--url", help="Of a collector on this machine.")] = "http://127.0.0.1:8700",
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help="As collect enrol wrote or read it. Default: in FOLDER."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Rehearse with made-up phones beside a device of yours: all whose tokens are left enrol, wait and answer.

    Their reports are stored in FOLDER's collection: begin another one for real people.
    """
    from graphveil.cli.collect import screens as screens
    from graphveil.collection.desk import require_extra

    require_extra()
    from graphveil.collection.simulation.phones import ring

    with working() as progress:
        answer = ring(folder, data, url, players.cast(None), progress, tokens)
    emit(answer, as_json=as_json, screen=lambda: screens.plain(answer))
