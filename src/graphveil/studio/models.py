"""The JSON that a studio reads and answers, as `/openapi.json` describes it."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from graphveil.studio.root import Finished, Source
from graphveil.studio.store import State

#: A path below the studio's folder, or `name:cora` for a named set.
Data = Annotated[str, Field(max_length=1_000)]
Word = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,:=_+-]*$")]
Setting = str | int | float | bool | None


def _writable(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    # Python reads NaN and halves of characters, which no file and no other reader of JSON takes.
    json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    return content


Content = Annotated[dict[str, JsonValue], AfterValidator(_writable)]


class Strict(BaseModel):
    """Nothing beside what is declared."""

    model_config = ConfigDict(extra="forbid")


# ---- requests ----


class Work(Strict):
    """What a command shall do; each command refuses what it does not take."""

    data: Data | None = None
    method: Word | None = None
    settings: dict[str, Setting] = Field({}, max_length=60, description="Of the method, epsilons and delta among them.")
    want: Word | None = Field(None, description="A goal: accuracy=0.8 or lift=0.02.")
    degree: float | None = Field(None, gt=0, lt=1e6)
    runs: list[Data] = Field([], max_length=50)
    run: Data | None = None
    attack: Word | None = None
    truth: Data | None = None
    seed: int | None = Field(None, ge=0)
    repeats: int | None = Field(None, ge=1, le=100)
    split: Word | None = None
    controls: bool = True
    private_share: float | None = Field(None, gt=0, le=1)
    reproducible_noise: int | None = Field(None, ge=0, description="Voids the guarantee.")
    without_lift: bool = False
    folder: Data | None = Field(None, description="Of an import: the folder to create.")
    source: Data | None = Field(None, description="Of an import: a file below, sqlite:///FILE or postgresql://...")
    nodes_query: str | None = Field(None, max_length=10_000)
    edges_query: str | None = Field(None, max_length=10_000)


class Query(Work):
    """A question that spends and writes nothing."""

    query: Literal["describe", "plan", "advise", "compare-runs"]


class Start(Work):
    """A job; whatever spends privacy names the price that its button showed."""

    job: Literal["train", "release", "attack", "plan", "import"]
    price: str | None = Field(None, max_length=20_000)


# ---- answers ----


class Problem(Strict):
    """Why something was refused, in one line."""

    error: str
    code: str


class Trust(Strict):
    """Who may see raw data, in words, and the methods that fit it."""

    name: str
    words: str
    methods: list[str]


class SettingOf(Strict):
    """A setting of a method, budgets among them; `allowed` is empty where its help says what it takes."""

    key: str
    default: Setting
    allowed: list[str]
    help: str


class MethodOf(Strict):
    """A method, as the registry knows it."""

    name: str
    summary: str
    trust: str
    budgets: list[SettingOf]
    settings: list[SettingOf]
    command: Literal["train", "release"]


class Stop(Strict):
    """An epsilon on the slider: so many of so many guesses are right at most; None where nearly all may be."""

    epsilon: float
    right: int | None
    of: int | None


class Attack(Strict):
    """An attack, what it is after, and on what: a run, a release or a federation."""

    name: str
    summary: str
    on: Literal["run", "release", "federation"]


class Choices(Strict):
    """Everything that a page offers."""

    root: str
    trusts: list[Trust]
    methods: list[MethodOf]
    stops: list[Stop]
    attacks: list[Attack]
    named: list[str]


class Folders(Strict):
    """What lies below the studio's folder."""

    data: list[Source]
    runs: list[Finished]


class Declared(Strict):
    """The declaration that was written, the command that writes the same, and what the check said."""

    toml: str
    command: str
    notes: list[str]


class Answered(Strict):
    """A command and its own JSON; the price that a job of the same work must name, None where it is free."""

    command: str
    answer: dict[str, JsonValue] | None = None
    price: str | None = None
    run: Annotated[str | None, Field(description="Of a plan: the command that trains or releases the same.")] = None
    config: Annotated[str | None, Field(description="Of a plan: the file that --config takes for the same.")] = None
    rehearsal: Annotated[str | None, Field(description="Of a plan: commands that rehearse the collection.")] = None


class Progress(Strict):
    """How far a job is."""

    stage: str
    done: int
    total: int
    epsilon: float | None


class JobOf(Strict):
    """A job; moments are seconds since 1970."""

    id: str
    job: str
    words: list[str]
    command: str
    state: State
    created: float
    began: float | None
    ended: float | None
    warnings: list[str]
    error: str | None
    answer: dict[str, JsonValue] | None
    out: str | None
    price: str | None = Field(description="What its button named.")


class Run(Strict):
    """A finished run, for its owner: figures, guarantee, files and the picture of its parties."""

    path: str
    kind: Literal["run", "release", "federation", "collection"]
    result: dict[str, JsonValue]
    files: list[str]
    report: str | None = Field(description="The full report, which stays on this machine.")
    attacks: list[str]
    private: list[str]
    parties: dict[str, JsonValue] | None


class Node(Strict):
    """A node of the picture; label and right are left out where labels are private."""

    x: int
    y: int
    predicted: int
    label: int | None
    right: bool | None
    part: str | None


class Edges(Strict):
    """Edges of a kind, as pairs of places in the list of nodes."""

    kind: str
    pairs: list[tuple[int, int]]


class Graph(Strict):
    """A sample of the graph with predictions, and what was left out, in sentences."""

    total: int
    classes: list[str]
    nodes: list[Node]
    edges: list[Edges]
    left_out: list[str]


class Saved(Strict):
    """The choices of the page, and the version of them that they are, or were made from."""

    version: int = Field(ge=0)
    saved: Content
