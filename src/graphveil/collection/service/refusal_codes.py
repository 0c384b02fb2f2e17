"""Every code that a collector answers, or a device or a person's page refuses with: what it means, and what to do.

`graphveil explain CODE` and the organiser's page print them. The words of refusals that a person can meet at a terminal
are the device's (`graphveil.device.refusals`), those of the page are in `assets/refusals.js`; to a few of them this
file adds what the organiser can do. The standard's tables (docs/standard) say the same of each code in a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from graphveil.device.refusals import REFUSALS
from graphveil.privacy.statement.codes import Entry, table_of

_INTAKE, _SERVICE = "tests/collection/test_intake.py", "tests/collection/test_service.py"
_DEVICE, _COMMANDS = "tests/on_device/test_reporting.py", "tests/on_device/test_commands.py"
_ADMINISTRATION = "tests/collection/test_administration.py"
_ANSWERED = "docs/standard/refused.md#what-a-collector-answers"
_REFUSED = "docs/standard/refused.md#what-is-refused-by-code"
_PERSON_PAGE, _CODES = "tests/collection/test_person_page.py", "tests/collection/test_refusal_codes.py"


def _entries(backed: Mapping[str, str]) -> Iterator[Entry]:
    for code, backed_by in backed.items():
        refusal = REFUSALS[code]
        # After the person's words and not in their place: both get the same refusal.
        to_do = f"{refusal.to_do} For the organiser: {ORGANISER[code]}" if code in ORGANISER else refusal.to_do
        yield _entry(code, refusal.happened, refusal.means, to_do, backed_by)


def _entry(code: str, sentence: str, means: str, to_do: str, backed_by: str) -> Entry:
    return Entry(code=code, group="answer", sentence=sentence, means=means, limits=to_do, backed_by=backed_by)


#: What the organiser can do besides.
ORGANISER: Final[Mapping[str, str]] = {
    "conflict": "if it happens often, ask whether devices were set up twice.",
    "closed": "open another round if the reports of late people are wanted.",
    "impossible": "if there are many, find the program that makes them.",
    "bad-version": "GET /version tells the collector's.",
    "too-often": "behind a shared address or a proxy, see the options of collect serve.",
    "wrong-host": "graphveil collect serve FOLDER --host-name NAME declares another one.",
    "disk-full": "make room on the disk; reports are taken again without a restart.",
    "bad-token": "where it was lost, graphveil collect enrol FOLDER --again ID makes another one.",
}
#: Code -> the test or page that shows when it is answered.
_BY_COLLECTORS: Final[Mapping[str, str]] = {
    "conflict": f"{_INTAKE}::test_a_report_is_stored_once",
    "closed": f"{_INTAKE}::test_nothing_is_taken_before_an_epoch_or_after_it",
    "not-open": f"{_INTAKE}::test_who_enrolled_later_takes_part_later",
    "wrong-task": f"{_INTAKE}::test_what_is_refused_is_not_stored",
    "wrong-length": f"{_INTAKE}::test_what_is_refused_is_not_stored",
    "impossible": f"{_INTAKE}::test_what_is_refused_is_not_stored",
    "unknown-enrolment": f"{_INTAKE}::test_what_is_refused_is_not_stored",
    "bad-tag": f"{_INTAKE}::test_a_tag_of_another_person_is_refused",
    "truncated": f"{_INTAKE}::test_a_body_of_many_is_read_to_where_it_breaks",
    "bad-version": f"{_INTAKE}::test_a_body_of_many_is_read_to_where_it_breaks",
    "too-many": f"{_INTAKE}::test_a_body_of_many_is_read_to_where_it_breaks",
    "too-large": _ANSWERED,
    "too-slow": _ANSWERED,
    "wrong-host": f"{_SERVICE}::test_a_collector_is_asked_under_its_own_names",
    "busy": f"{_SERVICE}::test_a_group_answers_in_order_and_stops_when_too_many_wait",
    "too-often": f"{_SERVICE}::test_who_asks_too_often_or_too_slowly_is_cut_off",
    "disk-full": f"{_SERVICE}::test_a_full_disk_refuses_and_recovers_by_itself",
    "bad-enrolment": f"{_SERVICE}::test_refusals_are_problems_with_a_code",
    "bad-token": f"{_INTAKE}::test_a_token_enrols_one_device",
    "no-opening": f"{_SERVICE}::test_a_device_is_enrolled_and_reports",
    "bad-request": f"{_ADMINISTRATION}::test_requests_that_cannot_be_read_are_problems",
    "not-found": f"{_ADMINISTRATION}::test_requests_that_cannot_be_read_are_problems",
    "fault": _ANSWERED,
}
_BY_DEVICES: Final[Mapping[str, str]] = {
    "not-canonical": f"{_DEVICE}::test_another_spelling_is_refused",
    "bad-signature": f"{_DEVICE}::test_a_task_is_what_was_signed",
    "wrong-hash": f"{_COMMANDS}::test_other_tasks_and_openings_are_refused",
    "bad-task": f"{_DEVICE}::test_a_task_is_what_was_signed",
    "epsilon": f"{_DEVICE}::test_weaker_thresholds_than_stated_are_refused",
    "bad-ids": "tests/on_device/test_whom.py::test_a_list_that_names_somebody_twice_is_refused",
    "bad-opening": f"{_COMMANDS}::test_other_tasks_and_openings_are_refused",
    "bad-value": f"{_DEVICE}::test_values_that_are_not_as_declared_are_refused",
    "cap": f"{_COMMANDS}::test_a_limit_is_kept",
    "ledger": f"{_COMMANDS}::test_a_device_that_lost_a_part_of_itself_says_nothing_more",
    "keystore": "tests/on_device/test_keystore.py::test_a_store_that_is_gone_or_locked_is_never_replaced",
    "filling": f"{_DEVICE}::test_bodies_that_no_device_sends_are_refused",
    "command": f"{_COMMANDS}::test_wrong_words_are_one_line",
    "enrolment": f"{_COMMANDS}::test_only_the_owner_may_read",
    "collector": f"{_COMMANDS}::test_a_report_that_was_not_taken_is_sent_again",
}
#: Of no refusal, of an organiser's request alone, or of the program that speaks in lines.
_OTHER_CODES: Final = (
    _entry(
        "accepted", "the report is kept", "It is stored on disk and counts once.", "Nothing.",
        f"{_INTAKE}::test_a_report_is_stored_once",
    ),
    _entry(
        "again", "the same bytes are kept already", "The report was sent before; it still counts once.", "Nothing.",
        f"{_INTAKE}::test_a_report_is_stored_once",
    ),
    _entry(
        "not-admitted", "for the organiser alone", "The administrator's token is missing or wrong.",
        "Take the token of the file admin-token.", f"{_ADMINISTRATION}::test_every_request_asks_for_the_token",
    ),
    _entry(
        "not-now", "the organiser's request cannot be met as things stand", "Such as closing where nothing is open, "
        "exporting fewer reports than the minimum, or opening a round of a collection that was scrubbed; the "
        "answer says which.",
        "Do as the answer says.", f"{_ADMINISTRATION}::test_what_cannot_be_done_says_why",
    ),
    _entry(
        "no-key", "the organiser's key is not on the server", "A round is opened in the organiser's name, and what "
        "signs for it is elsewhere.",
        "Open the round where the key is: graphveil collect open FOLDER.",
        f"{_ADMINISTRATION}::test_without_the_key_the_command_is_told",
    ),
    _entry(
        "bad-line", "a line that the program does not know", "No such operation, or not all that it takes.",
        "See docs/standard/conformance.md.", _REFUSED,
    ),
)  # fmt: skip
#: Of a person's page alone; in its own words.
_BY_PAGES: Final = (
    _entry(
        "no-ed25519", "this browser cannot check signatures", "It cannot tell who signed the questions.",
        "Take a newer one: Chrome or Edge 137, Firefox 129, Safari 17 or later.", _REFUSED,
    ),
    _entry(
        "no-crypto", "this address is not secure", "A browser offers cryptography over https:// only.",
        "Open the link as you were sent it.", f"{_CODES}::test_every_code_has_words",
    ),
    _entry(
        "no-storage", "this browser stores nothing", "Your secret and what you have sent must be kept.",
        "Close the private window, or allow this site to store data.", f"{_CODES}::test_every_code_has_words",
    ),
    _entry(
        "other-task", "this collector asks something else now",
        "This browser takes part here in other questions, and keeps to their hash and to the key that signed them. "
        "These are different, or somebody else's.",
        "Go on only with a new link that the organiser sent you through another channel.",
        f"{_PERSON_PAGE}::test_a_collector_that_swaps_the_key_is_refused",
    ),
    _entry(
        "other-person", "the collector takes you for somebody else",
        "The collector says that your token is another's. None of your data was sent.", "Tell the organiser.",
        f"{_CODES}::test_every_code_has_words",
    ),
    _entry(
        "other-link", "this browser takes part for somebody else",
        "Your link is not that of the person who joined here: an answer would be theirs.",
        "Open it in a browser or a profile of your own. Whoever joined here goes on at this address without a link.",
        f"{_PERSON_PAGE}::test_each_refusal_is_told_in_words",
    ),
    _entry(
        "bad-link", "this is not a token, or not a hash", "Both are made of 0 to 9 and a to f.",
        "Copy the whole link, or both parts of it.", f"{_PERSON_PAGE}::test_each_refusal_is_told_in_words",
    ),
    _entry(
        "bad-file", "the file cannot be read", "It is neither your answers as JSON nor a table of your numbers.",
        "Load JSON, or your numbers with a comma or a line between them.",
        f"{_PERSON_PAGE}::test_answers_come_from_a_file_or_a_paste",
    ),
    _entry(
        "other-tab", "another tab was first", "This browser had recorded a report for this round in another tab. That "
        "one was sent, and not the one you saw here.",
        "There is nothing more to do in this round.",
        f"{_PERSON_PAGE}::test_of_two_tabs_one_report_is_sent_and_the_other_says_so",
    ),
    _entry(
        "unconfirmed", "the collector has not confirmed it",
        "The page was closed or the connection lost after your report was recorded.",
        "Send it again: the same bytes, at no further cost.",
        f"{_PERSON_PAGE}::test_a_report_that_was_booked_and_not_sent_is_sent_again_as_the_same_bytes",
    ),
    _entry(
        "offline", "the collector cannot be reached", "The connection was lost, or the collector does not run.",
        "Check your connection and try again.", f"{_CODES}::test_every_code_has_words",
    ),
    _entry(
        "round-over", "this round is closed", "Nothing was recorded or sent, and nothing can be sent now.",
        "What you typed stays while this page is open; should another round open, come back to it.",
        "tests/collection/test_rounds.py::test_what_was_typed_stays_and_nothing_is_booked_for_a_round_that_is_closed",
    ),
)  # fmt: skip
#: All codes, with their words.
REFUSAL_CODES: Final = table_of((*_entries(_BY_COLLECTORS), *_entries(_BY_DEVICES), *_OTHER_CODES, *_BY_PAGES))
