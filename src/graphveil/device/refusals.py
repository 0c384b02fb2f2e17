"""Every refusal that a person at a terminal can meet, in words: what happened, what it means, what to do.

The one table of these words: `graphveil explain CODE` and the organiser's page print them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from graphveil.device.errors import DeviceError

#: What a command has done by the moment at which it is refused.
NOTHING: Final = "Nothing was recorded or sent this time."
JOINING: Final = "None of your data was sent."
BOOKED: Final = "Your report is recorded and its price is spent; sent again, it is the same bytes, at no further cost."

_STANDARD = "It does not follow the standard: use another one, and tell the organiser the code."
_DO_NOT = "Do not answer; ask the organiser."


@dataclass(frozen=True)
class Refusal:
    """What a code says.

    Args:
        happened: what is wrong.
        means: why, where the device adds no detail of its own.
        to_do: what to do about it.
        whole: whether the device's own detail replaces both sentences.
    """

    happened: str
    means: str
    to_do: str
    whole: bool = False


#: What collectors answer.
COLLECTOR: Final[Mapping[str, Refusal]] = MappingProxyType(
    {
        "conflict": Refusal(
            "the collector holds another report of this person for this round",
            "The first one stands. A device with two secrets has answered, or somebody who has the device's key.",
            "Nothing changes the first report; if only one device was set up, tell the organiser.",
        ),
        "closed": Refusal(
            "the round, or the whole collection, has closed",
            "The report came too late: it is not stored and does not count.",
            "Where another round opens, answer again: the same answers cost nothing more.",
        ),
        "not-open": Refusal(
            "the person's first round, or the whole collection, has not begun",
            "The report came too early: whoever joins while a round runs is asked from the next one on.",
            "Type the same command again when that round is open.",
        ),
        "wrong-task": Refusal(
            "the report answers another task than the collector's",
            "Another collection is at this address now.",
            "Ask the organiser which address belongs to the hash of the task.",
        ),
        "wrong-length": Refusal(
            "the report has another length than the task asks for", "The program that wrote it is broken.", _STANDARD
        ),
        "impossible": Refusal(
            "the report says what no device can say",
            "Its bits have no meaning, such as a class that there is not: a broken program, or a forged report. It was "
            "not stored.",
            _STANDARD,
        ),
        "unknown-enrolment": Refusal(
            "the collector does not know this device",
            "It never enrolled here, or the collector was restored from a backup without it.",
            "Enrol again with the same token and folder: you stay the same person, at no cost. Then answer again.",
        ),
        "bad-tag": Refusal(
            "the report does not carry the device's own mark",
            "Somebody else speaks in an enrolled person's name, or bytes were damaged on the way. It was not stored; "
            "the person's own report is not affected.",
            "Type the same command again; if it stays so, tell the organiser.",
        ),
        "truncated": Refusal(
            "the report was cut off",
            "The connection broke, or the program that wrote it does not follow the standard.",
            "Type the same command again.",
        ),
        "bad-version": Refusal(
            "the collector speaks another version of the standard",
            "Either it or this program is newer than the other.",
            "Compare the versions, and update the older one.",
        ),
        "too-many": Refusal(
            "more reports came than one request may hold",
            "A request holds at most 1,000 reports.",
            "Send them in several requests.",
        ),
        "too-large": Refusal(
            "more bytes came than one request may hold",
            "A request holds 1,000 reports, and at most 16 MB.",
            "Send fewer reports at once.",
        ),
        "wrong-host": Refusal(
            "the collector does not answer under this name",
            "It answers under the name in people's links, and its organiser has declared no other.",
            "Use the address of your link.",
        ),
        "too-slow": Refusal(
            "the connection was too slow",
            "A request has 15 seconds to arrive.",
            "Type the same command again over a better connection.",
        ),
        "busy": Refusal(
            "the collector is busy",
            "More reports wait than its disk takes, or its database cannot be reached.",
            "Type the same command again in a moment.",
        ),
        "too-often": Refusal(
            "too many requests came from this address, or for this person",
            "Requests are limited for each address and each person.",
            "Wait ten seconds, and type the same command again.",
        ),
        "disk-full": Refusal(
            "the collector has no room",
            "Less than 256 MB of its disk is free.",
            "Type the same command again in a few minutes.",
        ),
        "bad-enrolment": Refusal(
            "the collector cannot read the token",
            "Token or key are not hexadecimal, or the key does not have 32 bytes.",
            "Copy the token again, whole.",
        ),
        "bad-token": Refusal(
            "this token enrols nobody here",
            "It is mistyped, was replaced, or has enrolled another device: each enrols one device, once.",
            "Copy it again, whole. Where that does not help, ask the organiser for another one.",
        ),
        "no-opening": Refusal(
            "no round has opened yet",
            "Answers are taken when everybody who wants to has joined.",
            "Type the same command again when the organiser has opened the first round.",
        ),
        "bad-request": Refusal(
            "the collector cannot read what it was asked",
            "A member is missing or is of another kind: one of the two does not follow the standard.",
            "Compare the versions of both; tell the organiser.",
        ),
        "not-found": Refusal(
            "nothing of a collection is at this address",
            "Another program answers there, or the path of the address is not the collector's.",
            "Copy the collector's address again, whole.",
        ),
        "fault": Refusal(
            "the collector failed",
            "Something failed that should not; nothing that it has acknowledged is lost.",
            "Type the same command again later; if it stays so, tell the organiser.",
        ),
    }
)
#: What the device itself refuses; `closed` and `not-open`, above, as well.
DEVICE: Final[Mapping[str, Refusal]] = MappingProxyType(
    {
        "not-canonical": Refusal(
            "the task or opening is not written as the standard says",
            "Its bytes are not the canonical encoding of a value, so its hash would differ.",
            _DO_NOT,
        ),
        "bad-signature": Refusal(
            "the signature is not the organiser's", "Key or signature are invalid, or they sign other bytes.", _DO_NOT
        ),
        "wrong-hash": Refusal(
            "this is another task than the one that was expected",
            "The collector serves a task with another hash than you were told: other questions, or another signer.",
            "Do not answer; compare the hash with what the organiser published.",
        ),
        "bad-task": Refusal(
            "the task is not as the standard says",
            "A member of it is missing, unknown or out of its range.",
            "Ask the organiser: nobody can answer it.",
        ),
        "epsilon": Refusal(
            "the task protects less than it says",
            "The integers by which noise is drawn would cost more than the stated epsilon.",
            _DO_NOT,
        ),
        "bad-ids": Refusal(
            "the list of people is not one that both ends of a link can rely on",
            "One person could be passed off as another, or be listed twice, so that both ends report a link.",
            _DO_NOT,
        ),
        "bad-opening": Refusal(
            "the round does not follow from those before",
            "Its nonces are invalid or not those seen before: the device could be asked for more than it agreed to.",
            "Wait for the next round; if it stays so, ask the organiser.",
        ),
        "bad-value": Refusal(
            "an answer is not as declared",
            "A feature out of its range, a class that there is not, or a field that is not asked.",
            "Correct the file, and type the same command again.",
        ),
        "cap": Refusal(
            "the limit does not pay for the report",
            "Its price and what was spent before are above it. Where you set none, one task of each organiser is "
            "answered: the same questions, signed anew, would be answered twice.",
            "Leave out a part of your answers, or enrol again with the same token and a larger --limit.",
            whole=True,
        ),
        "ledger": Refusal(
            "the record of what was spent, or the secret, is damaged or gone",
            "What was sent is no longer known, so nothing more is sent: answers could be sent again uncounted.",
            "Restore the device's folder as it was last; where that cannot be done, answer no collection again that "
            "you have answered, and enrol in other collections with another --folder.",
            whole=True,
        ),
        "keystore": Refusal(
            "the platform's key store does not store or return the secret",
            "It is locked, does not answer, or does not have what was put into it. No new secret is made: it would be "
            "fresh noise.",
            "Unlock it, install keyring again, or restore it. Before the first enrolment, "
            "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring keeps the secret in a file.",
            whole=True,
        ),
        "filling": Refusal("bits follow the last answer", "The last byte of a report is filled with zeros.", _STANDARD),
        "command": Refusal(
            "the command was mistyped",
            "A word of it is missing, is not known, or is not of its form.",
            "See python -m graphveil.device --help.",
            whole=True,
        ),
        "enrolment": Refusal(
            "the device is not enrolled as the command needs it",
            "It takes part in no such collection, was not confirmed, is told to become somebody else, or its folder "
            "cannot be used.",
            "Do as the message says.",
            whole=True,
        ),
        "collector": Refusal(
            "the collector cannot be reached, or does not answer as the standard says",
            "The connection was lost, the address is not its own, or another program is there.",
            "Check address and connection, and type the same command again.",
            whole=True,
        ),
    }
)
REFUSALS: Final[Mapping[str, Refusal]] = MappingProxyType({**COLLECTOR, **DEVICE})


def without_detail(code: str) -> DeviceError:
    """Return a refusal of which only the code is known."""
    return DeviceError(code, REFUSALS[code].happened)


def after_disk(done_so_far: str) -> str:
    """Return what a command has done when the disk fails it.

    Args:
        done_so_far: what it had done before.
    """
    # A full disk may have taken the report and not its seal.
    return "Nothing was sent." if done_so_far == NOTHING else done_so_far


def refusal_line(error: DeviceError, done_so_far: str) -> str:
    """Return a refusal as one line: its code, what happened, what it means for the person's report, what to do.

    Args:
        error: of a code of the tables above.
        done_so_far: what the command has done by then.
    """
    words = REFUSALS[error.code]
    if words.whole:
        happened = f"{error.detail}."
    # A collector's refusal has no detail.
    elif error.detail == words.happened:
        happened = f"{words.happened}. {words.means}"
    else:
        happened = f"{words.happened}: {error.detail}."
    return " ".join((f"{error.code}: {happened}", done_so_far, error.remedy or words.to_do))
