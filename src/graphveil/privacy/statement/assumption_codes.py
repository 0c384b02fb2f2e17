"""Everything a guarantee may rely on: its sentence, what that means, when it breaks, and what backs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from graphveil.privacy.statement.codes import Entry, assumption_entry, open_entry, table_of

_REPORTS: Final = (
    assumption_entry(
        "feature-range-public",
        "the range [{low}, {high}] of {number} is public and was not read off the data",
        means="Everybody may know between which numbers a feature lies; noise is scaled to that range.",
        breaks="somebody took the minimum and maximum of the collected values. The range then reveals the "
        "value of whoever has the extreme",
        backed_by="tests/mechanisms/test_checklist.py::test_item_6_encoder_constants_do_not_depend_on_data",
    ),
    assumption_entry(
        "classes-public",
        "the list of the {classes} classes is public",
        means="Everybody may know which labels there can be.",
        breaks="classes were listed from the labels that occurred",
        backed_by="tests/mechanisms/labels/test_categories.py",
    ),
    assumption_entry(
        "users-public",
        "the {nodes} users and their ids are public",
        means="Everybody may know who takes part, by id.",
        breaks="an id reveals something: a name, or numbers in the order of joining",
        backed_by="tests/mechanisms/edges/test_adjacency.py::test_item_1_unit_and_relation_are_declared",
    ),
    assumption_entry(
        "lower-id-reports",
        "of every two users the one with the lower id reports, which is public",
        means="A relationship is reported once, so that it costs the epsilon of one report.",
        breaks="devices disagree about the order of ids: a pair is reported by both and costs twice, or by nobody",
        backed_by="tests/mechanisms/edges/test_adjacency.py",
    ),
    assumption_entry(
        "both-ends-report",
        "both ends of a relationship report it, at epsilon {epsilon} each",
        means="A relationship is reported twice, and its epsilon is the sum of both.",
        breaks="somebody quotes the epsilon of one end: the price is the sum of both",
        backed_by="tests/mechanisms/edges/test_adjacency.py::test_item_1_unit_and_relation_are_declared",
    ),
    assumption_entry(
        "reports-once",
        "every user reports once",
        means="Epsilon is the price of one report for each value.",
        breaks="a device sends fresh noise for the same value again: k reports cost k times epsilon",
        backed_by="tests/methods/conformance.py",
    ),
    assumption_entry(
        "one-of-reports",
        "every user sends one of these reports, and which one is public",
        means="Epsilon is the larger price of the two: nobody pays both.",
        breaks="somebody sends both reports, whose epsilons then add up, or what is secret decides which one is sent",
        backed_by="tests/methods/local/test_answer_pool.py::test_everybody_sends_a_label_or_an_answer",
    ),
    assumption_entry(
        "reports-counted",
        "every user reports at most: {each}",
        means="Epsilon is the price of as many reports as the most asked user sent.",
        breaks="the same people are asked for more: more predictions than were declared (`queries`), or another epoch "
        "of a collection than the export counts. Epsilon counts these reports",
        backed_by="tests/methods/base/test_people.py::test_a_declared_second_report_is_counted_in_the_guarantee",
    ),
    assumption_entry(
        "participation-public",
        "who takes part is public",
        means="Epsilon hides what somebody sent, not that they sent something.",
        breaks="taking part is itself the secret (a clinic's patients)",
        backed_by="docs/explanation/guarantee.md#what-is-not-protected",
    ),
    assumption_entry(
        "permanent-reports",
        "every device keeps its secret, and answers an equal value with an equal report",
        means="However often a device reports the same value, it reveals no more than one report.",
        breaks="a device forgets its secret, and draws its noise anew",
        backed_by="tests/mechanisms/test_permanent.py",
    ),
    assumption_entry(
        "changes-open",
        "when a value changed, and when it went back, is NOT hidden",
        means="Whoever reads all reports of a device sees when its value changed.",
        breaks="that something changed is itself the secret",
        backed_by="tests/mechanisms/test_permanent.py",
    ),
    assumption_entry(
        "shares-public",
        "each feature's part of epsilon is public, the same for all users, and was not read off the data",
        means="Features have parts of epsilon of their own, which everybody may know.",
        breaks="the shares come from each person's own data, or from private data that nobody paid for",
        backed_by="tests/mechanisms/features/test_feature_rr.py",
    ),
    assumption_entry(
        "codebooks-public",
        "the public seed of the codebooks was not chosen by looking at the data",
        means="The codewords that a report names are public, and do not depend on anybody's vector.",
        breaks="somebody tried seeds on the collected vectors and kept the best",
        backed_by="tests/mechanisms/features/test_privunit.py",
    ),
    assumption_entry(
        "length-public",
        "the bound {radius} on the length of a vector is public and was not read off the data",
        means="Vectors are cut to that length, which everybody may know.",
        breaks="the bound is the largest length of the collected vectors",
        backed_by="tests/mechanisms/features/test_privunit.py",
    ),
    assumption_entry(
        "topology-public",
        "the topology (who is linked to whom, and each degree) is public and not protected",
        means="The connections are used as they are, and model and predictions may show them.",
        breaks="friendships, payments or contacts are themselves private. Collect neighbour lists then",
        backed_by="docs/explanation/guarantee.md#what-is-not-protected",
    ),
    open_entry("features", "sent", "features", backed_by="tests/methods/local/test_lpgnn.py"),
    open_entry("labels", "sent", "labels", backed_by="tests/methods/local/test_lpgnn.py"),
    open_entry("links", "sent", "neighbour lists", backed_by="tests/methods/links/test_privacy.py"),
)
_IDENTITY: Final = (
    assumption_entry(
        "known-by-id",
        "people are known by their ids: nobody reports under two",
        means="Whoever has an id that reported before is not asked again.",
        breaks="somebody has two ids, and pays twice without knowing",
        backed_by="tests/methods/base/test_people.py::test_only_new_ids_are_asked_and_their_price_is_theirs_alone",
    ),
    assumption_entry(
        "others-declared",
        "nobody in {graph} has reported before: declared, not checked{times}",
        means="They pay for themselves alone, because the caller said that they are new.",
        breaks="whoever asked for the prediction was wrong: those people reported twice for the price of one",
        backed_by="tests/methods/base/test_people.py::test_how_often_people_were_declared_to_be_others_is_told",
    ),
    assumption_entry(
        "rows-declared",
        "row i of {graph} is the same person as row i of the run: declared, not checked{times}",
        means="People are answered from what they sent, because the caller said who they are.",
        breaks="rows moved: people are predicted from others' reports. Nobody pays for that",
        backed_by="tests/methods/base/test_people.py::test_the_caller_may_say_who_they_are",
    ),
    assumption_entry(
        "reports-handed-in",
        "the reports handed in for {graph} are old or permanent ones: this account has not paid for them",
        means="A prediction used reports that the caller brought.",
        breaks="they were drawn anew, and nobody paid for them",
        backed_by="tests/methods/base/test_people.py::test_old_and_permanent_reports_are_taken_as_they_are",
    ),
    assumption_entry(
        "one-copy",
        "predictions are paid for from one copy of the run: a copied ledger holds the whole budget once more",
        means="Who predicts does so from this folder, whose ledger counts all of it.",
        breaks="two copies of the folder are used: each has the same budget, and nothing can see that",
        backed_by="docs/explanation/composition.md#one-report-per-person",
    ),
    assumption_entry(
        "start-public",
        "the file or module that training starts from was made without these data",
        means="Epsilon is the price of what training reads, not of the weights that it was given.",
        breaks="the weights were fitted to the same people before: they reveal them, whatever epsilon is",
        backed_by="tests/methods/test_own_backbone.py",
    ),
    assumption_entry(
        "statistics-public",
        "how often each class gives each answer is public and was not read off the data",
        means="Answers are read with shares that everybody may know.",
        breaks="the shares were counted among the same people: predictions reveal them, and nobody paid",
        backed_by="tests/methods/local/test_answer_pool.py",
    ),
    assumption_entry(
        "extractor-public",
        "the extractor that made the features is public, was trained without these data and reads each person alone",
        means="Epsilon is the price of the embeddings, not of the extractor that made them.",
        breaks="it was trained on these people, or on their links: embeddings show others' data, whatever epsilon is",
        backed_by="tests/methods/release/test_scores.py",
    ),
    assumption_entry(
        "proxy-public",
        "settings were chosen on {graph}, which is public, shares nobody with these data and was chosen without them",
        means="Trials read that graph's true labels. Epsilon is the price of the one training that followed.",
        breaks="it is an older export of the same people, or was chosen by looking at them: trials read those people",
        backed_by="tests/methods/runs/test_tuning.py",
    ),
)
_CURATOR: Final = (
    assumption_entry(
        "trained-once",
        "the curator trains on these data once: the price of further runs adds up",
        means="Epsilon is the price of this run alone.",
        breaks="the same data are trained on again, with any method, and somebody quotes one epsilon",
        backed_by="docs/explanation/composition.md#composition",
    ),
    assumption_entry(
        "node-set-public",
        "the set of nodes, who trains and who validates are all public",
        means="Everybody may know who is in the data and whose label is used.",
        breaks="being in the data is the secret: the number of training nodes is used as it is",
        backed_by="tests/methods/curator/test_training_checklist.py",
    ),
    assumption_entry(
        "features-and-labels-open",
        "features and labels are NOT protected{declared}: the model and predictions may show them",
        means="Epsilon is of edges alone.",
        breaks="always, where the unit is an edge: model and predictions may show them",
        backed_by="tests/methods/curator/test_class_sums.py",
    ),
    assumption_entry(
        "joint-privacy",
        "joint privacy covers what everybody else sees; what is computed for a node itself (its prediction, its row "
        "of the cache) is for that node alone and must not be shown to others; predicting gives the curator all rows, "
        "each to be handed to its node, and no row is in the model file",
        means="A node's own prediction is made of its own data, for its own eyes.",
        breaks="predictions or cached rows of a run with unit node are put on a public page",
        backed_by="tests/methods/test_own_rows.py",
    ),
    assumption_entry(
        "degree-promised",
        "no node has more than {degree} edges: promised before anybody looked at them",
        means="Somebody who knows no edge promised it; an edge more is refused.",
        breaks="D was read off the graph: the largest degree in the data reveals something about whoever has it",
        backed_by="tests/graphs/test_degree_bound.py",
    ),
    assumption_entry(
        "lists-cut",
        "each node's own list is cut to {degree} neighbours by a public hash",
        means="At most so many entries of a node's own list are used.",
        breaks="the unit is read as hiding the others' lists too",
        backed_by="tests/graphs/test_degree_bound.py",
    ),
    assumption_entry(
        "trials-covered",
        "settings were chosen by repeat-and-select over a random number of trials ({law} law, mean {mean}), which "
        "epsilon covers; nothing of the other trials is shown, not even their number",
        means="Tuning on private data was paid for.",
        breaks="somebody shows another trial, or says how many there were",
        backed_by="tests/methods/runs/test_paid_tuning.py",
    ),
)
_RELEASES: Final = (
    assumption_entry(
        "private-nodes-public",
        "the {nodes} nodes, the {private} private ones among them and the public edges are public",
        means="Everybody may know which pairs are protected.",
        breaks="who may have private edges was read off the private edges: a released edge at a node then proves that "
        "it has one, and epsilon is infinite",
        backed_by="tests/mechanisms/edges/test_pair_domain.py",
    ),
    assumption_entry(
        "released-once",
        "the graph is released once",
        means="Epsilon is the price of one release.",
        breaks="it is released again with fresh noise: the epsilons add up",
        backed_by="tests/methods/release/test_heterorr.py",
    ),
    assumption_entry(
        "counts-public",
        "which pairs belong to which count is public and does not depend on private edges",
        means="The blocks that are counted were made without private edges, or their making was paid for.",
        breaks="the blocks were chosen by looking at private edges, and nobody paid",
        backed_by="tests/mechanisms/edges/test_noisy_counts.py",
    ),
    assumption_entry(
        "counts-disjoint",
        "no pair belongs to two counts",
        means="An edge moves one count by one.",
        breaks="an edge is counted twice: it costs twice as much",
        backed_by="tests/mechanisms/edges/test_noisy_counts.py",
    ),
    assumption_entry(
        "counts-released-once",
        "the counts are released once",
        means="Epsilon is the price of one release.",
        breaks="they are counted again with fresh noise: the epsilons add up",
        backed_by="tests/mechanisms/edges/test_noisy_counts.py",
    ),
    assumption_entry(
        "asymptotic",
        "asymptotic: no finite-time guarantee; assumes that the Markov chain over trees has converged",
        means="The tree was drawn with private edges by a chain that is exact only after infinitely many steps.",
        breaks="nobody can prove that it holds beyond a handful of nodes: `edges=public-tree` does not need it",
        backed_by="tests/audit/test_trees.py",
    ),
    assumption_entry(
        "labelled-public",
        "who has a label is public",
        means="Epsilon hides which label somebody has, not that they have one.",
        breaks="that a label is missing is itself the secret",
        backed_by="tests/methods/release/test_heterorr.py",
    ),
    open_entry("features", "published", "features", backed_by="tests/methods/release/test_heterorr.py"),
    open_entry("labels", "published", "labels", backed_by="tests/methods/release/test_privacy.py"),
    open_entry("edges", "published", "edges", backed_by="tests/methods/release/test_heterorr.py"),
    assumption_entry(
        "users-counted-public",
        "the number of users, {users}, is public",
        means="Everybody may know how many have scores.",
        breaks="how many there are is itself the secret",
        backed_by="tests/methods/release/test_scores.py",
    ),
    assumption_entry(
        "one-row-of-scores",
        "every user has one row of scores",
        means="A user moves the mean of the scores by one row.",
        breaks="somebody has two rows, and moves the mean twice as far",
        backed_by="tests/methods/release/test_scores.py",
    ),
)
_FEDERATION: Final = (
    assumption_entry(
        "protocol-followed",
        "all parties follow the protocol, however curious they are",
        means="Nobody sends other messages than agreed, to learn more from the answers.",
        breaks="a party runs another program",
        backed_by="docs/explanation/trust-models.md#the-vertical-model",
    ),
    assumption_entry(
        "server-colludes-not",
        "the server colludes with no holder: together they could read all features",
        means="The server, which knows the masks, gives them to nobody.",
        breaks="the server and one holder put together what they have",
        backed_by="tests/federation/test_leaks.py::"
        "test_a_dealer_that_passes_messages_on_unmasks_every_feature_and_otherwise_none",
    ),
    assumption_entry(
        "holder-randomizes-alone",
        "each holder's own program randomizes its guesses: nobody else is trusted, whoever colludes",
        means="A guess leaves its holder with noise in it.",
        breaks="the holder itself runs another program",
        backed_by="tests/federation/modes/test_guesses.py",
    ),
    assumption_entry(
        "shared-ids-public",
        "which ids all holders share, how many ids each has, and who is labelled are public",
        means="All parties learn it, and anybody may know.",
        breaks="being a customer of both holders is itself the secret",
        backed_by="docs/how-to/federation.md",
    ),
    assumption_entry(
        "agreed-before-data",
        "the range of features and the numbers of columns, classes and rounds are agreed before anyone's data is read",
        means="What noise is scaled to was not read off the data.",
        breaks="a holder looked at its data before it signed",
        backed_by="docs/how-to/federation.md",
    ),
    assumption_entry(
        "runs-add-up",
        "a run under another agreement asks the same people again: the epsilons of all runs add up",
        means="Epsilon is the price of this run alone.",
        breaks="the same holders run again, and somebody quotes one epsilon",
        backed_by="docs/explanation/composition.md#composition",
    ),
    assumption_entry(
        "opens-individual",
        "all parties learn who trains and who validates; holders otherwise send each other nothing, but the gradients "
        "that come back can show which labels are alike, and the label holder sees a hidden layer, which without "
        "noise reveals something about the others' features; the server sees each holder's published embeddings",
        means="What mode individual opens to whom.",
        breaks="somebody reads the epsilon as one between holders",
        backed_by="tests/federation/test_leaks.py",
    ),
    assumption_entry(
        "opens-paper",
        "all parties learn who trains and who validates; in every round all holders see X W, a projection of all "
        "features: enough rounds show each holder the others' features; the server sees each holder's published "
        "embeddings",
        means="What mode paper opens to whom.",
        breaks="somebody reads the epsilon as one between holders",
        backed_by="tests/federation/test_leaks.py",
    ),
    assumption_entry(
        "opens-shared-linear",
        "all parties learn who trains and who validates; holders otherwise send each other only uniform shares, but "
        "the label holder sees a hidden layer, which without noise reveals something about the others' features; the "
        "server deals masks for what holders send each other; what it receives is masked by keys that holders agree "
        "on without it, and it sees only the sum of all holders' propagated projections S^K X W, with noise that no "
        "single holder can remove",
        means="What mode shared-linear opens to whom.",
        breaks="the server colludes with a holder",
        backed_by="tests/federation/test_views.py",
    ),
    assumption_entry(
        "opens-guesses",
        "the other holders are given the training labels; the label holder sees each other holder's guess of every "
        "node's class, randomized where epsilon is finite; the server sees none of it",
        means="What mode guesses opens to whom.",
        breaks="labels are private from the other holders, and epsilon_y is inf",
        backed_by="tests/federation/modes/test_guesses.py",
    ),
    assumption_entry(
        "opens-all-shares",
        "all parties learn who trains and who validates; holders otherwise send each other only uniform shares, but "
        "the label holder sees the last hidden layer without noise (of those who train in each step, of those who "
        "validate now and then, of everybody once), which reveals something about the others' features; the server "
        "deals masks, and learns which rounds validate best",
        means="What mode all-shares opens to whom.",
        breaks="the server colludes with a holder",
        backed_by="tests/federation/modes/test_all_shares.py",
    ),
    assumption_entry(
        "labels-randomized",
        "each label was randomized once, at epsilon {epsilon} against everybody but its holder",
        means="Training labels have noise of their own, beside the epsilon of rows or guesses.",
        breaks="the label is read as covered by the epsilon of the rows: it has its own",
        backed_by="tests/federation/modes/test_labels.py",
    ),
    assumption_entry(
        "labels-given",
        "the labels of training nodes are given to all holders as they are",
        means="The other holders train on true labels.",
        breaks="labels are private from the other holders: choose a finite epsilon_y",
        backed_by="tests/federation/modes/test_guesses.py",
    ),
    assumption_entry(
        "labels-in-gradients",
        "{who} can learn the labels of training nodes, perhaps without their names, from gradients",
        means="Labels have no noise, and the gradients of training reveal them.",
        breaks="labels are private from those named: choose a finite epsilon_y",
        backed_by="tests/federation/test_leaks.py::"
        "test_the_server_reads_labels_from_gradients_unless_they_were_randomized_and_is_said_to",
    ),
    assumption_entry(
        "neighbours-move",
        "a change in one person also changes the rows of neighbours up to {hops} hops away, which are other units",
        means="Epsilon is of one row, and a person's features reach several.",
        breaks="the epsilon of one row is read as that of a person",
        backed_by="docs/explanation/trust-models.md#the-vertical-model",
    ),
    assumption_entry(
        "training-moves",
        "a node that trains also changes {what} of all nodes, which are other units",
        means="Epsilon is of what is published for one node, not of its part in training.",
        breaks="the epsilon of one row is read as that of a person",
        backed_by="docs/explanation/trust-models.md#the-vertical-model",
    ),
    assumption_entry(
        "trains-or-is-guessed",
        "who trains is public, and nobody both trains and is guessed about: a person pays for one of the two",
        means="Training and a guess cost a person the whole epsilon each, and no person both.",
        breaks="a holder sends guesses of those who train: then both prices add up",
        backed_by="tests/federation/modes/test_private_network.py",
    ),
    assumption_entry(
        "connections-unread",
        "the holders that guess read none of their connections",
        means="A person's connections at such a holder change nothing that it sends.",
        breaks="a holder's program smooths its guesses over its graph",
        backed_by="tests/federation/modes/test_private_network.py",
    ),
    assumption_entry(
        "own-lists-cut",
        "the holders that guess read at most {degree} names on the list of anyone who trains, and no other connection",
        means="The label of a person who trains counts in so many others' noisy sums, and nowhere else.",
        breaks="a list is cut by what is in another, or lists of people who do not train are read",
        backed_by="tests/federation/modes/test_private_votes.py",
    ),
    assumption_entry(
        "one-id-a-person",
        "a person has one id at a holder",
        means="A person moves one row of the holder's data.",
        breaks="somebody has several ids: their epsilons add up",
        backed_by="docs/how-to/federation.md",
    ),
    assumption_entry(
        "label-holder-open",
        "the label holder's own features, connections and labels are trained on as they are, and the model shows them",
        means="Noise protects what the other holders have.",
        breaks="the label holder's own people are read as covered",
        backed_by="tests/federation/modes/test_private_network.py",
    ),
    assumption_entry(
        "paper-opened",
        "paper mode was chosen although it opens features to the other holders",
        means="All parties signed that they know it.",
        breaks="features are private from the other holders",
        backed_by="tests/federation/test_leaks.py::"
        "test_open_first_layers_and_known_weights_give_every_feature_of_the_other_holder",
    ),
    assumption_entry(
        "no-privacy-chosen",
        "no privacy against {reader} was chosen",
        means="Epsilon is infinite, as was agreed.",
        breaks="the agreement is read as a promise against that reader",
        backed_by="tests/federation/test_leaks.py",
    ),
    assumption_entry(
        "sums-in-the-clear",
        "without noise the server can compute how alike the propagated features of those who train are and, if it "
        "knows as many people as there are columns, everybody's features",
        means="Masks between holders hide nothing from the server where epsilon is infinite.",
        breaks="always, where epsilon is infinite",
        backed_by="tests/attacks/test_federation.py",
    ),
)

#: The entry of each assumption, by its code.
ASSUMPTION_CODES: Final[Mapping[str, Entry]] = table_of((*_REPORTS, *_IDENTITY, *_CURATOR, *_RELEASES, *_FEDERATION))
