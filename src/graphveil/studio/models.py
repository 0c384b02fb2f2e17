"""The JSON that a studio reads and answers, as `/openapi.json` describes it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

#: A path below the studio's folder, or `name:cora` for a named set.
Data = Annotated[str, Field(max_length=1_000)]
Word = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,:=_+-]*$")]
Setting = str | int | float | bool | None
State = Literal["waiting", "running", "done", "refused", "failed", "stopped", "killed"]


class Strict(BaseModel):
    """Nothing beside what is declared."""

    model_config = ConfigDict(extra="forbid")


# ---- asked ----


class Token(Strict):
    """The token of the link that was printed."""

    token: str = Field(max_length=200)


class Work(Strict):
    """What a command shall do; each command refuses what it does not take."""

    data: Data | None = None
    method: Word | None = None
    methods: list[Word] = Field([], max_length=20)
    trust: Word | None = None
    settings: dict[str, Setting] = Field({}, max_length=60, description="Of the method, epsilons and delta among them.")
    epsilons: dict[str, list[float]] = Field({}, max_length=4, description="Of a comparison: budget -> its values.")
    want: Word | None = Field(None, description="A goal: accuracy=0.8 or lift=0.02.")
    pilot: Data | None = None
    degree: float | None = Field(None, gt=0, lt=1e6)
    epsilon: float | None = Field(None, gt=0, description="Of a rehearsal.")
    runs: list[Data] = Field([], max_length=50)
    run: Data | None = None
    attack: Word | None = None
    truth: Data | None = None
    nodes: int | Data | None = Field(None, description="Of an attack: how many; of an import: the table of people.")
    shadows: int | None = Field(None, ge=4)
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

    job: Literal["train", "release", "attack", "plan", "advise", "compare", "import"]
    price: str | None = Field(None, max_length=20_000)


class Again(Strict):
    """The price of a job that spends once more."""

    price: str | None = Field(None, max_length=20_000)


class Folder(Strict):
    """A folder of tables."""

    folder: Data


class Declaring(Folder):
    """A person's answers about a folder of tables."""

    answers: dict[str, JsonValue]
    replace: bool = False


class Saving(Strict):
    """Choices that were made from a version of them."""

    version: int = Field(ge=0)
    saved: dict[str, JsonValue]


# ---- answered ----


class Problem(Strict):
    """Why something was refused, in one line."""

    error: str
    code: str


class Session(Strict):
    """What the page sends as X-CSRF-Token."""

    csrf: str


class Limit(Strict):
    """Of the jobs: how many at once; memory and threads of each."""

    jobs: int
    memory_mb: int
    threads: int


class Trust(Strict):
    """Who may see raw data, and what `advise` recommends and offers there."""

    name: str
    sentence: str
    methods: list[str]


class Budget(Strict):
    """A budget of a method: its default, and what one unit of it protects."""

    key: str
    default: float | str | None
    unit: str


class SettingOf(Strict):
    """A setting of a method."""

    key: str
    kind: str
    default: Setting
    allowed: list[str]
    help: str


class MethodOf(Strict):
    """A method, as the registry knows it."""

    name: str
    summary: str
    trust: str
    page: str | None
    budgets: list[Budget]
    settings: list[SettingOf]
    command: Literal["train", "release"]


class Stop(Strict):
    """An epsilon on the slider: so many of so many guesses are right at most; None where nearly all may be."""

    epsilon: float
    right: int | None
    of: int | None
    sentence: str


class Attack(Strict):
    """An attack, what it is after, and on what: a run, a release or a federation."""

    name: str
    summary: str
    on: Literal["run", "release", "federation"]


class Choices(Strict):
    """Everything that a page offers."""

    version: str
    root: str
    limits: Limit
    trusts: list[Trust]
    methods: list[MethodOf]
    column_kinds: list[str]
    stops: list[Stop]
    attacks: list[Attack]
    named: list[str]


class SourceOf(Strict):
    """A folder with data."""

    path: str
    state: Literal["declared", "tables", "broken"]
    files: list[str]
    private: list[str]
    error: str | None
    toml: str | None = Field(description="Its declaration.")


class FinishedOf(Strict):
    """A folder with finished work."""

    path: str
    kind: Literal["run", "release", "federation", "collection"]
    method: str
    data: str
    modified: str


class Folders(Strict):
    """What lies below the studio's folder."""

    data: list[SourceOf]
    runs: list[FinishedOf]


class Stored(Strict):
    """A table that was stored."""

    path: str
    bytes: int


class Draft(Strict):
    """What column names alone suggest, and what only a person can answer."""

    draft: dict[str, JsonValue]


class Declared(Strict):
    """The declaration that was written, the command that writes the same, and what the check said."""

    toml: str
    command: str
    notes: list[str]


class Answered(Strict):
    """A command's own JSON, the command, and the price that a job of the same work must name, None where it is free."""

    answer: dict[str, JsonValue]
    command: str
    price: str | None
    config: str | None = Field(description="Of a plan: the file that --config takes for the same.")


class Priced(Strict):
    """What a job would spend, in a sentence for its button; None where it spends nothing."""

    price: str | None
    command: str
    plan: dict[str, JsonValue] | None


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
    progress: Progress | None
    warnings: list[str]
    error: str | None
    answer: dict[str, JsonValue] | None
    out: str | None
    price: str | None = Field(description="What its button named.")


class JobList(Strict):
    """All jobs, the last one first; their answers are left out."""

    jobs: list[JobOf]


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
    """The choices of the page, and their version."""

    version: int
    saved: dict[str, JsonValue]
