"""The JSON that a collector reads and answers, as `/openapi.json` describes it.

Answers hold these members and no others; `tests/collection/test_openapi.py` compares them.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

#: A name that leads nowhere but into its own folder.
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


def _storable(text: str) -> str:
    # Half of a character of UTF-16 has no bytes, and no database holds the character 0 in a text.
    if "\0" in text:
        raise ValueError("the character 0")
    text.encode()
    return text


Words = Annotated[str, AfterValidator(_storable)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="SHA-256.")]
Nonce = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Answer(BaseModel):
    """Nothing beside what is declared."""

    model_config = ConfigDict(extra="forbid")


# ---- requests ----


class Enrolling(BaseModel):
    """What a device says to be enrolled, both hexadecimal: the token it was given, a key of 32 bytes that it made."""

    token: Words
    key: Words


class Exporting(BaseModel):
    """The name of a folder that is not there yet."""

    folder: Words = Field(pattern=_NAME)


class Losing(BaseModel):
    """Who lost their token."""

    id: Words


# ---- answers to devices ----


class Signed(Answer):
    """A key and its signature by Ed25519 of what stands beside them."""

    key: Hash = Field(description="Of the organiser, hexadecimal.")
    signature: str = Field(pattern="^[0-9a-f]{128}$")


class SignedTask(Signed):
    """What is asked, as docs/standard/task.md describes it."""

    task: dict[str, Any]


class Nonces(Answer):
    """One for each epoch that was opened."""

    task: Hash
    nonces: list[Nonce]


class SignedOpening(Signed):
    """Which epochs were opened, as docs/standard/task.md describes it."""

    opening: Nonces


class Round(Answer):
    """Number of the last epoch, 0 before the first; whether reports of it are taken now; until when at the latest."""

    epoch: int
    open: bool
    until: int | None


class Enrolled(Answer):
    """Number of the person, and the epoch from which on the device takes part."""

    number: int
    joined: int


class Alive(Answer):
    """It answers."""

    alive: bool


class Version(Answer):
    """Of graphveil, and of the standard of collections."""

    version: str
    standard: int


class Answers(Answer):
    """A code for each report, in order."""

    answers: list[str]


# ---- answers to the organiser ----


class Asked(Answer):
    """A field of the task."""

    kind: str
    epsilon: str


class Hour(Answer):
    """Reports that came in an hour, which begins at these seconds since 1970."""

    hour: int
    reports: int


class Refusals(Answer):
    """How often something was refused: its code, what that says and means, what the organiser can do."""

    code: str
    says: str
    means: str
    to_do: str
    count: int


class Status(Answer):
    """How the collection stands. Moments are seconds since 1970; received and empty are of the last epoch."""

    name: str
    organiser: str
    purpose: str
    contact: str
    task: Hash
    signed_by: str = Field(description="The organiser's key, in short.")
    asked: list[Asked]
    guarantee: list[str]
    public: list[str]
    opens: int
    closes: int
    now: int
    least: int
    people: int
    enrolled: int
    epoch: int
    open: bool
    received: int
    empty: int
    hours: list[Hour]
    answered: int
    epochs: list[Hash] = Field(description="Of closed epochs, in order.")
    scrubbed: bool
    refused: list[Refusals]
    key: bool = Field(description="Whether the organiser's key is on the server.")
    open_command: str
    train: list[str] = Field(description="Commands.")
    folder: str | None


class Mean(Answer):
    """An average over everybody: by how much it errs (95%), None before anybody answered; how wide its range is."""

    field: str
    what: str
    unit: str
    error: float | None
    whole: float


class Accuracy(Answer):
    """How often a vote of the neighbours is right, under what is assumed of them: a formula, and no plan's figure."""

    neighbours: float
    alike: float
    now: float
    everybody: float
    chance: float


class Expected(Answer):
    """What so many answers would say; accuracy is None where no label is asked."""

    answered: int
    means: list[Mean]
    accuracy: Accuracy | None


class Opened(Answer):
    """The epoch that is open now."""

    epoch: int
    nonce: Nonce
    enrolled: int


class Closed(Answer):
    """The epoch that is closed now, its hash, and whether the order in which its reports came is forgotten."""

    epoch: int
    hash: Hash
    order_forgotten: bool


class Frozen(Answer):
    """A closed epoch."""

    hash: Hash
    nonce: Nonce


class Check(Answer):
    """How many reports of a field a check suspects."""

    field: str
    check: str
    suspects: int


class Findings(Answer):
    """What the checks for forged reports found, with the fields that fail as a whole."""

    reports: int
    suspects: int
    by: list[Check]
    amiss: list[str]
    false_alarm: float = Field(description="Chance that an honest collection is suspected.")
    sentence: str


class Exported(Answer):
    """What `collection.json` of the export says, and beside it where it is, what was found and how to train."""

    folder: str
    standard: int
    task: Hash
    epochs: list[Frozen]
    people: int
    enrolled: int
    answered: int
    answered_each: dict[str, int]
    most_links: int | None
    answers_a_person: dict[str, int]
    findings: Findings
    forged: str
    train: list[str]


class Replaced(Answer):
    """A person, and their new token, hexadecimal."""

    id: str
    token: str


class Problem(BaseModel):
    """A refusal (RFC 9457), with a code that `graphveil explain CODE` explains."""

    type: str
    title: str
    status: int
    code: str
    detail: str | None = Field(None, description="What is in the way.")
    command: str | None = Field(None, description="Does it where the organiser's key is.")
