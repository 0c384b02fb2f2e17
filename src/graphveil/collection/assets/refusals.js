/** Every refusal in a person's words: what happened, and what to do. Codes are those of standard and collectors. */

const TASK = "Something is wrong with what this collector asks. Do not take part; tell the organiser.";
const PAGE =
  "This should not happen with this page. Trying again reveals nothing more about you; tell the organiser the code.";
const SAME = "Your report is recorded. It can be sent again as the same bytes, at no further cost.";

/** Code -> head, words. */
export const WORDS = {
  "not-canonical": ["The questions cannot be read", TASK],
  "bad-signature": ["The organiser's signature is wrong", TASK],
  "other-task": [
    "This collector asks something else now",
    "This browser takes part here in other questions, and keeps to their hash and to the key that signed them. These are " +
      "different, or somebody else's. Go on only with a new link that the organiser sent you through another channel.",
  ],
  "wrong-hash": [
    "These are other questions than those you were invited to",
    "The hash in your link is not that of this collector's task: it asks something else, or somebody else has signed it. " +
      "Do not take part; ask the organiser for the right link, through another channel.",
  ],
  "bad-task": ["The questions are not as the standard says", TASK],
  epsilon: [
    "The questions ask more than they say",
    "The noise would protect you less than the organiser states. Do not take part; tell the organiser.",
  ],
  "bad-opening": [
    "The collector's draw has changed",
    "This browser has answered under another draw, and a new one could ask you for more. Nothing was sent; tell " +
      "the organiser.",
  ],
  "bad-value": ["An answer is not as declared", "Nothing was drawn or sent. Check your answers."],
  cap: [
    "Your limit does not pay for this report",
    "Nothing was recorded or sent. Leave out a question, or raise your limit below. Where you set none, one collection of " +
      "each organiser is answered.",
  ],
  "no-ed25519": [
    "This browser cannot check signatures",
    "It cannot tell who signed the questions. Take a newer one: Chrome or Edge 137, Firefox 129, Safari 17 or later.",
  ],
  "no-crypto": [
    "This address is not secure",
    "A browser offers cryptography over https:// only. Open the link as you were sent it.",
  ],
  "no-storage": [
    "This browser stores nothing",
    "Your secret and what you have sent must be kept. Close the private window, or allow this site to store data.",
  ],
  "bad-ids": [
    "The list of people cannot be right",
    "It is not that of the questions, or lists somebody twice, under two spellings of one name: one person could " +
      "be passed off as another, or both ends could report a connection. Do not take part; tell the organiser.",
  ],
  "other-person": [
    "The collector takes you for somebody else",
    "The collector says that your token is another's. None of your data was sent. Tell the organiser.",
  ],
  "other-link": [
    "This browser takes part for somebody else",
    "Your link is not that of the person who joined here: an answer would be theirs. Open it in a browser or a profile of " +
      "your own. Whoever joined here goes on at this address without a link.",
  ],
  "bad-link": [
    "This is not a token, or not a hash",
    "Both are made of 0 to 9 and a to f. Copy the whole link, or both parts of it.",
  ],
  "bad-file": [
    "The file cannot be read",
    "It is neither your answers as JSON nor a table of your numbers. Load JSON, or your numbers with a comma or a line " +
      "between them.",
  ],
  "other-tab": [
    "Another tab was first",
    "This browser had recorded a report for this round in another tab. That one was sent, and not the one you saw here. " +
      "There is nothing more to do in this round.",
  ],
  unconfirmed: [
    "The collector has not confirmed it",
    "The page was closed or the connection lost after your report was recorded. Send it again: the same bytes, at no " +
      "further cost.",
  ],
  offline: [
    "The collector cannot be reached",
    "The connection was lost, or the collector does not run. Check your connection and try again.",
  ],
  "round-over": [
    "This round is closed",
    "Nothing was recorded or sent, and nothing can be sent now. What you typed stays while this page is open; should " +
      "another round open, come back to it.",
  ],
  closed: [
    "This round is closed",
    "The report came too late and does not count. Where a new round opens, the same answers cost nothing more.",
  ],
  "not-open": [
    "It has not begun",
    "The report came too early. It is recorded, and the same bytes can be sent when the round is open.",
  ],
  conflict: [
    "The collector holds another report of yours for this round",
    "The first one stands. This browser and another one have answered in your name: tell the organiser.",
  ],
  "wrong-task": ["The report is of another task", PAGE],
  "wrong-length": ["The report has another length", PAGE],
  impossible: ["The report says what no report can say", PAGE],
  truncated: ["The report was cut off", SAME],
  "bad-version": ["The collector speaks another version", "Load this page anew."],
  "unknown-enrolment": [
    "The collector does not know this browser",
    "It may have been set up anew. Tell the organiser.",
  ],
  "bad-tag": ["The report does not carry your mark", "The collector knows another key for you. Tell the organiser."],
  "bad-enrolment": ["The token cannot be read", "Copy the whole link."],
  "bad-token": [
    "This token does not work here",
    "It was never issued, or it has enrolled another browser, or this one before its data were cleared. A " +
      "token works once, so that nobody " +
      "answers twice. Ask the organiser.",
  ],
  "no-opening": [
    "Enrolment is still open",
    "Answers are taken when everybody who wants to has joined. Come back later.",
  ],
  "too-many": ["The collector accepts no more at once", SAME],
  "too-large": ["The collector accepts no more at once", SAME],
  "wrong-host": ["This is not the collector's own address", "Open your link as you were sent it."],
  "too-slow": ["The connection was too slow", "Nothing is lost. Try again."],
  busy: ["The collector is busy", "Try again in a moment."],
  "too-often": ["Too many attempts", "Wait ten seconds, and try again."],
  "disk-full": ["The collector has no room", "Try again in a few minutes."],
  "bad-request": ["The collector cannot read what this page asked", "Load this page anew."],
  "not-found": ["The collector does not know what this page asked for", "Load this page anew."],
  "not-admitted": ["This is for the organiser", "You need nothing from there."],
  fault: ["The collector failed", "Try again; tell the organiser if it persists."],
};

/** The code of any error: of a refusal, or "fault". */
export const codeOf = (error) => (Object.hasOwn(WORDS, error?.code) ? error.code : "fault");
