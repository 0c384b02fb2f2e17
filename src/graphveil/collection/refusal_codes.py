"""Every code that a collector answers, or a device refuses with: what it means, and what to do about it.

What `graphveil explain CODE` and the organiser's page print. The standard's tables (docs/standard) say the same of each
code in a line.
"""

from __future__ import annotations

from typing import Final

from graphveil.privacy.codes import Entry, table_of

_INTAKE, _SERVICE = "tests/collection/test_intake.py", "tests/collection/test_service.py"
_DEVICE, _COMMANDS = "tests/on_device/test_reporting.py", "tests/on_device/test_commands.py"


def _entry(code: str, sentence: str, means: str, to_do: str, backed_by: str) -> Entry:
    return Entry(code=code, group="answer", sentence=sentence, means=means, limits=to_do, backed_by=backed_by)


_REPORT: Final = (
    _entry(
        "accepted", "the report is kept", "It is stored on disk and counts once.", "Nothing.",
        f"{_INTAKE}::test_a_report_is_stored_once",
    ),
    _entry(
        "again", "the same bytes are kept already", "The report was sent before; it still counts once.", "Nothing.",
        f"{_INTAKE}::test_a_report_is_stored_once",
    ),
    _entry(
        "conflict", "other bytes are kept of this person", "The person's report of this round is another one, which "
        "stands. One device under two secrets, or somebody who has the device's key.",
        "Nothing changes the first report. If it happens often, ask whether devices were set up twice.",
        f"{_INTAKE}::test_a_report_is_stored_once",
    ),
    _entry(
        "closed", "the report's round, or the task, has closed", "The report came too late and is not stored: its "
        "sender was late, or it was held back on its way.",
        "Open another round if the reports of late people are wanted.",
        f"{_INTAKE}::test_nothing_is_taken_before_an_epoch_or_after_it",
    ),
    _entry(
        "not-open", "the person's round, or the task, has not opened", "The report came too early: its sender enrolled "
        "after this round began, or the first day of the task is still to come.",
        "Wait: devices send again later.",
        f"{_INTAKE}::test_who_enrolled_later_takes_part_later",
    ),
    _entry(
        "wrong-task", "the hash is not that of the task", "The report answers another task.",
        "Hand out the address and the hash that belong together.",
        f"{_INTAKE}::test_what_is_refused_is_not_stored",
    ),
    _entry(
        "wrong-length", "a body of another length", "The answer does not have as many bits as the task asks for.",
        "A client that does not keep to the standard: try it with the vectors.",
        f"{_INTAKE}::test_what_is_refused_is_not_stored",
    ),
    _entry(
        "impossible", "an answer that no device sends", "The bits of the answer have no meaning, such as a class that "
        "there is not: a broken client, or somebody who forges reports.",
        "It was not stored. Many of them: find the client that makes them.",
        f"{_INTAKE}::test_what_is_refused_is_not_stored",
    ),
    _entry(
        "unknown-enrolment", "nobody enrolled under this id", "A report of somebody who never enrolled here.",
        "Enrol the device with its token first.",
        f"{_INTAKE}::test_what_is_refused_is_not_stored",
    ),
    _entry(
        "bad-tag", "the tag is not the key's, or of no round", "Somebody else speaks in an enrolled person's name, or "
        "bytes were damaged on the way.",
        "It was not stored. The person's own report is not affected.",
        f"{_INTAKE}::test_a_tag_of_another_person_is_refused",
    ),
    _entry(
        "truncated", "the bytes end within a report", "The connection broke, or the client does not keep to the "
        "standard.",
        "Send the same bytes again, whole.",
        f"{_INTAKE}::test_a_body_of_many_is_read_to_where_it_breaks",
    ),
    _entry(
        "bad-version", "another version of the wire", "The client is newer or older than the collector, or speaks "
        "something else.",
        "Compare versions: GET /version.",
        f"{_INTAKE}::test_a_body_of_many_is_read_to_where_it_breaks",
    ),
)  # fmt: skip
_REQUEST: Final = (
    _entry(
        "too-many", "more reports than one request may hold", "A request holds at most 1,000 reports.",
        "Send them in several requests.", f"{_INTAKE}::test_a_body_of_many_is_read_to_where_it_breaks",
    ),
    _entry(
        "too-large", "more bytes than one request may hold", "A request holds at most 16 MB.",
        "Send fewer reports in a request.", "docs/standard/wire.md#what-a-collector-answers",
    ),
    _entry(
        "too-slow", "the bytes came too slowly", "A request has 15 seconds to arrive.",
        "Send again over a better connection.", "docs/standard/wire.md#what-a-collector-answers",
    ),
    _entry(
        "busy", "try again in a moment", "More reports wait than the disk takes, or the database cannot be reached.",
        "Send the same bytes again after a second.",
        f"{_SERVICE}::test_a_group_answers_in_order_and_stops_when_too_many_wait",
    ),
    _entry(
        "too-often", "too many requests from one address, or reports of one person",
        "Each address may ask for so much a second, and so may each person; wrong administration tokens count most.",
        "Wait ten seconds. Behind a shared address or a proxy: see the options of collect serve.",
        f"{_SERVICE}::test_who_asks_too_often_or_too_slowly_is_cut_off",
    ),
    _entry(
        "disk-full", "nothing can be kept; try again later", "Less than 256 MB of the collector's disk is free.",
        "Make room on the disk: reports are taken again without a restart.",
        f"{_SERVICE}::test_a_full_disk_refuses_and_recovers_by_itself",
    ),
    _entry(
        "bad-enrolment", "token or key are not of this form", "They are no hexadecimal numbers, or the key has not "
        "32 bytes.",
        "Copy the token again, whole.", f"{_SERVICE}::test_refusals_are_problems_with_a_code",
    ),
    _entry(
        "bad-token", "a token that was not given out, or another device's", "The token is mistyped, was replaced, or "
        "has enrolled another device.",
        "Copy it again. Where it was lost: graphveil collect enrol FOLDER --again ID.",
        f"{_INTAKE}::test_a_token_enrols_one_device",
    ),
    _entry(
        "no-opening", "no epoch has opened", "Enrolment is not over yet: nobody can answer.",
        "Wait until the organiser opens the first round.",
        f"{_SERVICE}::test_a_device_is_enrolled_and_reports",
    ),
    _entry(
        "not-admitted", "for the organiser alone", "The administration's token is missing or wrong.",
        "Take the token of the file admin-token.", f"{_SERVICE}::test_administration_asks_for_its_token",
    ),
    _entry(
        "not-now", "the organiser's request cannot be met as things stand", "Such as closing where nothing is open, or "
        "exporting fewer reports than the least number; the answer says which.",
        "Do as the answer says.", "tests/collection/test_administration.py::test_what_cannot_be_done_says_why",
    ),
    _entry(
        "no-key", "the organiser's key is not on the server", "A round is opened in the organiser's name, and what "
        "signs for it lies elsewhere.",
        "Open the round where the key is: graphveil collect open FOLDER.",
        "tests/collection/test_administration.py::test_without_the_key_the_command_is_told",
    ),
    _entry(
        "bad-request", "a request that cannot be read", "A member is missing or is of another kind.",
        "See /openapi.json for what is asked for.",
        "tests/collection/test_administration.py::test_requests_that_cannot_be_read_are_problems",
    ),
    _entry(
        "not-found", "nothing is at this address", "No page and no service has this address, or not for this method.",
        "See /openapi.json for what there is.",
        "tests/collection/test_administration.py::test_requests_that_cannot_be_read_are_problems",
    ),
    _entry(
        "fault", "a mistake of the collector", "Something failed that should not; nothing that was accepted is lost.",
        "Send again later, and tell the collector's operator.", "docs/standard/wire.md#what-a-collector-answers",
    ),
)  # fmt: skip
_TASK: Final = (
    _entry(
        "not-canonical", "bytes that are not the canonical spelling of a value", "A task or an opening was spelled "
        "otherwise than the standard says, so its hash would not be its own.",
        "Ask the organiser for the file as it was signed.", f"{_DEVICE}::test_another_spelling_is_refused",
    ),
    _entry(
        "bad-signature", "a signature that is not the organiser's", "Key or signature are none, or they sign other "
        "bytes.",
        "Do not answer; ask the organiser.", "tests/on_device/test_refusals.py::test_signatures_of_other_things",
    ),
    _entry(
        "wrong-hash", "another task than the one that was expected", "The collector serves a task with another hash "
        "than you were given.",
        "Do not answer; compare the hash with what the organiser published.",
        f"{_COMMANDS}::test_other_tasks_and_openings_are_refused",
    ),
    _entry(
        "bad-task", "facts that are not those of the standard", "A member of the task is missing, unknown or out of "
        "its range.",
        "Ask the organiser: nobody can answer it.", f"{_DEVICE}::test_a_task_is_what_was_signed",
    ),
    _entry(
        "epsilon", "thresholds that lose more than the stated epsilon", "The whole numbers by which noise is drawn "
        "would protect less than the task says.",
        "Do not answer; ask the organiser.", f"{_DEVICE}::test_weaker_thresholds_than_stated_are_refused",
    ),
    _entry(
        "bad-opening", "an opening that does not follow from those before", "The nonces are none, the epoch has not "
        "opened, or another nonce was told before.",
        "Wait for the next round; if it stays so, ask the organiser.",
        f"{_COMMANDS}::test_other_tasks_and_openings_are_refused",
    ),
    _entry(
        "no-ed25519", "the platform cannot check signatures", "This browser has no Ed25519 in WebCrypto, so the device "
        "cannot tell who signed the task.",
        "Take a newer browser, or the client in Python.", "docs/standard/refused.md#what-is-refused-by-code",
    ),
)  # fmt: skip
_PERSON: Final = (
    _entry(
        "bad-value", "a value that is not as declared", "A feature out of its range, a class that there is not, or a "
        "field that is not asked. Nothing was drawn or booked.",
        "Correct the value.", f"{_DEVICE}::test_values_that_are_not_as_declared_are_refused",
    ),
    _entry(
        "cap", "the person's own limit does not pay for the report", "The price of the report and all that was spent "
        "before are above the limit. Nothing was booked or sent.",
        "Raise the limit if you want to; the device does not by itself.", f"{_COMMANDS}::test_a_limit_is_kept",
    ),
    _entry(
        "ledger", "the ledger or the secret cannot be read", "What was spent is not known any more, so nothing more is "
        "said.",
        "Restore the device's folder; do not enrol it anew.",
        f"{_COMMANDS}::test_a_device_that_lost_a_part_of_itself_says_nothing_more",
    ),
    _entry(
        "keystore", "the platform's key store does not keep or tell the secret", "It is locked, does not answer, "
        "or does not have what was put into it. Nothing was booked or sent, and no new secret is made: it would be "
        "fresh noise.",
        "Unlock it, install keyring again, or restore it. Before the first enrolment, "
        "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring keeps the secret in a file.",
        "tests/on_device/test_keystore.py::test_a_store_that_is_gone_or_locked_is_never_replaced",
    ),
    _entry(
        "filling", "a bit of 1 after the last field", "The last byte of an answer is filled with zeros.",
        "A client that does not keep to the standard: try it with the vectors.",
        f"{_DEVICE}::test_bodies_that_no_device_sends_are_refused",
    ),
    _entry(
        "bad-line", "a line that the program does not know", "No such operation, or not all that it takes.",
        "See docs/standard/conformance.md.", "docs/standard/refused.md#what-is-refused-by-code",
    ),
    _entry(
        "command", "words that are no command", "The command line of the device was mistyped.",
        "python -m graphveil.device --help", f"{_COMMANDS}::test_wrong_words_are_one_line",
    ),
    _entry(
        "enrolment", "the device's folder cannot be used", "It is enrolled already, or is not, or others may read it.",
        "Do as the message says.", f"{_COMMANDS}::test_only_the_owner_may_read",
    ),
    _entry(
        "collector", "the collector cannot be reached or refuses", "Its own code follows in the message.",
        "Look that code up; a report that was booked is sent again at no price.",
        f"{_COMMANDS}::test_a_report_that_was_not_taken_is_sent_again",
    ),
)  # fmt: skip
#: code -> what it says.
REFUSAL_CODES: Final = table_of((*_REPORT, *_REQUEST, *_TASK, *_PERSON))
