"""How the modes of a federation differ: one value a mode, of public facts, which all rooms read in place of its name.

individual     h0^i = X_i W_i at each holder; nothing of it leaves
paper          h0 = sum_i X_i W_i on shares, opened to every holder each round
shared-linear  z = S^K X W on shares, S the mean of all holders' graphs, their sum opened to the server, noise within
guesses        each holder trains alone; one randomized guess of each node's class goes to the label holder, once;
               with unit "person" privately, of its edges at most noisy votes, and no guess of who trains (see `person`)
all-shares     every layer but the last on shares, z opened to the label holder alone, without noise

The programs of a mode are in `modes.programs`, by the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from graphveil.privacy.statement.assumption import Assumption, assume
from graphveil.privacy.statement.unit import EMBEDDING_ROW, GUESS, HIDDEN_ROW, ProtectedUnit

#: The kinds of messages by which holders find out which ids they share.
ALIGNING: Final = ("blinded-ids", "blinded-set", "aligned")
_SPLIT: Final = ("labelled-rows", "validation-rows")
#: Of the modes in which the server trains, step by step with the label holder; and of their predictions.
_SERVER_TRAINS: Final = (*ALIGNING, *_SPLIT, "hidden", "hidden-gradient", "kept-round")
_ON_SHARES: Final = ("mask-keys", "masked-left", "masked-right", "correction")
_EMBEDDINGS_LATER: Final = (*ALIGNING, "new-rows", "embeddings", "hidden")


@dataclass(frozen=True)
class Mode:
    """One way in which holders, server and label holder work together.

    Attributes:
        name: as agreements state it.
        unit: of epsilon, where it is not a person.
        sent, sent_later: the kinds of messages of a run, and of a prediction for people who joined after it.
        reader: who reads what holders publish.
        labels: how others learn training labels that are not randomized; None: they do not.
        labels_open: the same, as screens say it.
        assumes, assumes_public: further assumptions, always and where nothing is protected.
        trust: whom a holder trusts with what.
        rounds_after: how many rounds come beside those of publications.
        fixed: options that stay at their defaults.
        noisy: whether what is published may have noise.
        max_nodes: beyond it a run takes too long; `too_many_nodes` is the advice then, with a place for the number.
    """

    name: str
    unit: ProtectedUnit
    sent: tuple[str, ...]
    sent_later: tuple[str, ...]
    reader: str = "the server"
    labels: Assumption | None = None
    labels_open: str = "NOT PROTECTED: the server can learn those of training nodes, perhaps without their names"
    assumes: tuple[Assumption, ...] = ()
    assumes_public: tuple[Assumption, ...] = ()
    trust: str = "all follow the protocol; the server colludes with no holder, or features are lost"
    rounds_after: int = 1
    fixed: tuple[str, ...] = ()
    noisy: bool = True
    max_nodes: float = float("inf")
    too_many_nodes: str = ""

    @property
    def opens(self) -> Assumption:
        """What the mode opens to whom, as printed with every guarantee."""
        return assume(f"opens-{self.name}")

    @property
    def opens_layer(self) -> bool:
        """Whether the first layer is opened to all holders."""
        return "opened-share" in self.sent

    @property
    def opens_sum(self) -> bool:
        """Whether a sum over all holders, with their noise in it, is opened to the server."""
        return "noisy-share" in self.sent

    @property
    def opens_hidden(self) -> bool:
        """Whether the last hidden layer is opened to the label holder."""
        return "hidden-share" in self.sent

    @property
    def guesses(self) -> bool:
        """Whether holders train alone, and publish guesses of classes once in place of rows."""
        return "guesses" in self.sent


#: Name -> mode.
MODE_OF: Final[Mapping[str, Mode]] = MappingProxyType(
    {
        mode.name: mode
        for mode in (
            Mode(
                "individual",
                EMBEDDING_ROW,
                (*_SERVER_TRAINS, "embeddings", "embedding-gradient", "best-round"),
                _EMBEDDINGS_LATER,
                labels=assume("labels-in-gradients", who="the server and the holders"),
            ),
            Mode(
                "paper",
                EMBEDDING_ROW,
                (*_SERVER_TRAINS, *_ON_SHARES, "opened-share", "embeddings", "embedding-gradient", "best-round"),
                (*_EMBEDDINGS_LATER, *_ON_SHARES, "opened-share"),
                labels=assume("labels-in-gradients", who="the server and the holders"),
                assumes=(assume("paper-opened"),),
            ),
            Mode(
                "shared-linear",
                EMBEDDING_ROW,
                (
                    *(*_SERVER_TRAINS, *_ON_SHARES, "holder-key", "matrix-key", "hidden-matrix", "seal"),
                    *("masked-sum", "safe-bits", "noisy-share", "gradient-share"),
                ),
                (
                    *(*ALIGNING, "new-rows", "mask-keys", "holder-key", "matrix-key", "hidden-matrix"),
                    *("masked-right", "correction", "masked-sum", "safe-bits", "seal", "noisy-share", "hidden"),
                ),
                labels=assume("labels-in-gradients", who="the server"),
                assumes_public=(assume("sums-in-the-clear"),),
                rounds_after=2,
                # n^2 words for each holder and reader.
                max_nodes=60_000,
                too_many_nodes="shared-linear works on nodes x nodes numbers; above {:,} nodes take mode individual",
            ),
            Mode(
                "guesses",
                GUESS,
                (*ALIGNING, "training-labels", "guesses"),
                (*ALIGNING, "new-rows", "guesses"),
                reader="the label holder",
                labels=assume("labels-given"),
                labels_open="NOT PROTECTED: all holders are given those of training nodes",
                trust="each holder randomizes its own guesses, and trusts nobody with them; the server sees none",
            ),
            Mode(
                "all-shares",
                HIDDEN_ROW,
                (
                    *(*ALIGNING, *_SPLIT, "kept-round", "best-round", "holder-key"),
                    *(*_ON_SHARES, "masked-sum", "safe-bits", "hidden-share"),
                ),
                (*ALIGNING, *_ON_SHARES, "new-rows", "holder-key", "masked-sum", "safe-bits", "hidden-share"),
                reader="the label holder",
                labels_open="stay at their holder: gradients reach others as uniform shares alone",
                # What there is an arithmetic for, and how often z is opened: in each step.
                fixed=("aggregator", "combine", "layers", "republish", "bits"),
                noisy=False,
                max_nodes=10_000,
                too_many_nodes="all-shares masks nodes x nodes numbers for each holder; above {:,} nodes take mode "
                "shared-linear",
            ),
        )
    }
)
