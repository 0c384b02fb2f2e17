"""Feature recovery in a federation: another holder's columns from what it opens or publishes, round after round.

    masked, dealt   X_B = E + U for whoever deals the mask U and also sees the masked matrix E
    opened layers   h0_t = X_A W_A,t + X_B W_B,t in every round t.  W known: one solution once T h >= d_B.  W secret:
                    the span of X_B is known all the same, and whoever knows some people's rows learns the linear map
    anything else   x^ = ridge regression of the known people's rows on what arrived of them

Rows alike (Gram): inner products of rows keep through a random projection, and exactly so where slopes G are known:
h0_t - h0_{t+1} = rate X X^T G_t, so with D the left sides, X X^T = D (G^T D)^+ D^T.  In mode shared-linear without
noise the server knows z_t = Z_0 + P P^T A_t of those who train, P = S^K X, and A_t: z_t - z_1 in place of D, and A_t of
G_t, give P P^T once all rounds together have as many columns as P.
Source: linear algebra over rounds, on the first layer of Chen et al., IJCAI 2022, arXiv 2005.11903.
Shapes: X [n, d] float64, h0 [n, h].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.attacks.federation.labels import as_dense, own_rows, unit_rows
from graphveil.attacks.federation.views import Recorded, View
from graphveil.attacks.limits import Limit, no_limit
from graphveil.attacks.result import AttackResult, auc_of, judge, sample_of
from graphveil.errors import InputError
from graphveil.federation.core.messages import KINDS, UNIFORM
from graphveil.federation.crypto.masks import unpack_keys
from graphveil.federation.crypto.sharing import left_mask
from graphveil.runtime.checks import require_number

_FEWEST = 10  # people: half of them known, of whom a quarter chooses
_COLUMNS = 500
_ENTRIES = 30_000
_SAME_ROWS = 1_000
_RIDGES = (1e-10, 1e-7, 1e-4, 1e-2, 1.0, 100.0)
_ALIKE = 0.05
_SMALLEST = 1e-10


def feature_recovery(
    view: View, recorded: Recorded, *, victim: str, known_share: float = 0.5, seed: int = 0
) -> AttackResult:
    """Return how well a party tells a holder's features above the mean of the known people from those below.

    Args:
        recorded: the truth, which scores the attack.
        known_share: share of the people whose rows the party knows from elsewhere; all others are judged. Where weights
            are handed out, nothing need be known.

    Raises:
        InputError: a share outside (0, 1), fewer than ten people, or features in which people do not differ.
    """
    require_number("(0, 1)", "feature-recovery", known_share=known_share)
    people = len(view.people)
    if people < _FEWEST:
        raise InputError(f"{people} people", where="feature-recovery", allowed=f"{_FEWEST} or more")
    rng = np.random.default_rng([seed, 0xFEA7])
    holding = recorded.holdings[victim]
    columns = np.sort(rng.permutation(holding.features.shape[1])[:_COLUMNS])
    truth = as_dense(holding.features)[view.people].numpy()[:, columns]
    public = np.zeros(len(truth), dtype=bool)
    public[rng.permutation(len(truth))[: round(known_share * len(truth))]] = True
    mean = truth[public].mean(axis=0) if public.any() else np.zeros(len(columns))
    above = truth[~public] > mean
    if above.all() or not above.any():
        raise InputError("the unknown people have the same features as all others", where="feature-recovery")
    solved, source = unmask_features(view, victim), "masked matrices and their masks"
    if solved is None:
        # Features that need no guess, where the design hands out what solves them.
        solved, source = solve_features(view, victim), "weights that were handed out"
    if solved is None:
        guess, source = _best_guess(_inputs(view, victim), truth, public, rng)
    else:
        guess = solved[view.people].numpy()[~public][:, columns]
    # The control may choose its ridge as the attack does: a weaker control would turn chance into a finding.
    control, _ = _best_guess({"control": _control(view, recorded)}, truth, public, rng)
    scores, without = (_beyond_mean(rows, truth[public]) for rows in (guess, control))
    samples = [sample_of(scores[side], _ENTRIES, rng) for side in (above, ~above)]
    missing = [sample_of(without[side], _ENTRIES, rng) for side in (above, ~above)]
    figures = {
        "variance explained beyond the mean": _explained(guess, truth, public),
        "entries right": float(((guess > mean) == above).mean()),
        "entries right if all are below": float((~above).mean()),
        "people recognised by their row": _recognised(guess, truth[~public], rng),
    }
    return judge(
        "feature-recovery",
        f"a feature that {victim} alone holds, by {'the server' if view.is_server else view.party}",
        *samples,
        limit=limit_of_rows(view),
        seed=seed,
        baseline=auc_of(*missing),
        baseline_note=_control_note(view),
        figures=figures,
        notes=(f"best of what arrived: {source}", "features of one person are judged as if each were drawn by itself"),
    )


def rows_alike(view: View, recorded: Recorded, *, victim: str, nodes: int = 500, seed: int = 0) -> AttackResult:
    """Return how well a party tells the twentieth of all pairs that are most alike at a holder from the others.

    Args:
        view, recorded, victim: as of `feature_recovery`.

    Raises:
        InputError: fewer than ten people, or rows that are all alike.
    """
    rng = np.random.default_rng([seed, 0x64A])
    places = np.sort(rng.permutation(len(view.people))[:nodes])
    first, second = np.triu_indices(len(places), 1)
    x = as_dense(recorded.holdings[victim].features)[view.people]
    true = _inner(x)[places][:, places].numpy()[first, second]
    alike = true > np.quantile(true, 1 - _ALIKE) if len(true) else np.zeros(0, dtype=bool)
    if len(true) and not alike.any():
        # More pairs than that share the highest likeness: they are the ones to be found.
        alike = true == true.max()
    if len(places) < _FEWEST or alike.all():
        allowed = f"{_FEWEST} people or more, with different features"
        raise InputError("all pairs are alike, or there are too few", where="gram", allowed=allowed)
    similarity, source = _best_similarity(view, victim)
    scores = similarity[places][:, places].numpy()[first, second]
    baseline_scores = _inner(_control(view, recorded)).numpy()[places][:, places][first, second]
    figures = {"correlation with the true inner products": _correlation(scores, true)}
    if view.is_server and view.setting.mode.opens_sum:
        propagated = recorded.secret("gram")[: len(view.people)].double().numpy()
        pairs = propagated[places][:, places][first, second]
        figures["correlation with those of propagated features"] = _correlation(scores, pairs)
    return judge(
        "gram",
        f"which people are alike in what {victim} alone holds, by {'the server' if view.is_server else view.party}",
        scores[alike],
        scores[~alike],
        limit=limit_of_rows(view),
        seed=seed,
        baseline=auc_of(baseline_scores[alike], baseline_scores[~alike]),
        baseline_note=_control_note(view),
        figures=figures,
        notes=(f"from {source}", "pairs share nodes: intervals are somewhat too narrow"),
    )


def solve_features(view: View, victim: str) -> Tensor | None:
    """Return the victim's features, float64 [n, d_B], where a view holds weights, else None: X_B [W_1 .. W_T] = h0 -
    X_A W_A, by least squares.

    Args:
        view: of a naive design.
    """
    if view.holding is None or not view.weights:
        return None
    # Weights are handed out after a round, so the layer of the first round has none to go with.
    h, own_features = view.first_layers()[1:], as_dense(view.holding.features)
    weights = {name: each[: len(h)] for name, each in view.weights.items()}
    # The spy's own part is known exactly and comes off: what is left is linear in the victims' features alone.
    rest = [layer - own_features @ own for layer, own in zip(h, weights[view.party], strict=False)]
    other_holders = [name for name in view.setting.names if name != view.party]
    # All others are solved for at once, since the opened layer is the sum of their parts and shows none of them alone.
    stacked = torch.cat([torch.cat(weights[name], dim=1) for name in other_holders])
    solution: Tensor = torch.linalg.lstsq(stacked.T, torch.cat(rest, dim=1).T, driver="gelsd").solution.T
    start = sum(view.weights[name][0].shape[0] for name in other_holders[: other_holders.index(victim)])
    return solution[:, start : start + view.weights[victim][0].shape[0]]


def unmask_features(view: View, victim: str) -> Tensor | None:
    """Return the victim's features X = E + U, float64 [n, d_B], where a view of the dealer holds the masked matrix E,
    else None. Only in paper mode, whose keys stand in the order of the holders' matrices.

    Args:
        view: of a naive design.
    """
    masked, dealt = view.bodies("masked-left", victim), [m for m in view.messages if m.kind == "mask-keys"]
    if not view.is_server or not masked or not view.setting.mode.opens_layer:
        return None
    before = view.setting.names.index(victim)  # one key of each other holder's matrix stands before its own
    key = unpack_keys(next(m.body for m in dealt if m.to == victim))[before]
    e = masked[0]
    x: Tensor = (e + left_mask(key, *e.shape)).double() * 2.0**-view.setting.protocol.bits
    return x


def solve_likenesses(view: View) -> Tensor | None:
    """Return G = P P^T of those who train, float64 [t, t], where a view holds z without noise and A of several rounds,
    else None: G A = z - Z_0, by least squares once A has rank t, and before by `similarities_of`.
    """
    if not view.is_server or not view.setting.mode.opens_sum or not view.setting.publication.public:
        return None
    steps = view.steps()
    if not steps:
        return None
    moved, a = (torch.cat(side, dim=1) for side in zip(*steps, strict=True))
    # Exact numbers on both sides: far smaller singular values are still right than of what was measured.
    full = int(torch.linalg.matrix_rank(a, rtol=_SMALLEST)) == len(a)
    return moved @ torch.linalg.pinv(a, rtol=_SMALLEST) if full else similarities_of(steps)


def similarities_of(steps: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Return X X^T [n, n] from how far each layer of plain descent moved, over the rate, and by which slope."""
    d = torch.cat([moved for moved, _ in steps], dim=1)
    middle = torch.cat([slope.double() for _, slope in steps], dim=1).T @ d
    # Symmetrised first, as G^T X X^T G is: rounding leaves a part that is not, and the inverse would blow it up.
    products: Tensor = d @ torch.linalg.pinv((middle + middle.T) / 2, rtol=1e-5) @ d.T
    return products


def limit_of_rows(view: View) -> Limit:
    """Return why no epsilon bounds what is learned of a person's features."""
    if not view.is_server:
        if view.setting.mode.opens_layer:
            return no_limit("paper mode opens a projection of all features to all holders")
        return no_limit("holders are kept apart by what is not sent or only as shares, not by an epsilon")
    if view.setting.mode.opens_hidden:
        return no_limit("the server is sent no row, and no epsilon bounds that")
    if math.isinf(view.setting.privacy.epsilon):
        return no_limit("epsilon is inf: nothing is protected against the server")
    return no_limit("epsilon is that of one published row; a person's features move the rows of neighbours too")


def _inputs(view: View, victim: str) -> dict[str, Tensor]:
    """Return what can be read of every person [n, k], by name: own data alone, and with each kind of message."""
    own = [rows[view.people] for rows in own_rows(view)]
    inputs = {"own data": torch.cat(own, dim=1) if own else torch.zeros(len(view.people), 1, dtype=torch.float64)}
    for kind, bodies in {**view.rows(), **_opened(view, victim)}.items():
        inputs[kind] = torch.cat([*own[:1], *bodies], dim=1)
        # The last of them by itself too: predictions come from it, without dropout.
        inputs[f"last {kind}"] = torch.cat([*own[:1], bodies[-1]], dim=1)
    return inputs


def _opened(view: View, victim: str) -> dict[str, list[Tensor]]:
    """What several messages say together, in full precision."""
    if view.is_server:
        if view.setting.mode.opens_sum:
            likenesses = solve_likenesses(view)
            return {"noisy-share": view.projections()} | ({} if likenesses is None else {"likenesses": [likenesses]})
        bodies = view.trained("embeddings", victim)
        return {"embeddings": bodies} if bodies else {}
    return {"opened-share": view.first_layers()} if view.setting.mode.opens_layer else {}


def _control(view: View, recorded: Recorded) -> Tensor:
    """What is known without the run [n, k]: own data; the server has none, and is told everybody's class."""
    if view.is_server:
        return functional.one_hot(recorded.labels[view.people].clamp_min(0), recorded.setting.classes).double()
    return torch.cat(own_rows(view), dim=1)[view.people]


def _control_note(view: View) -> str:
    return "everybody's class" if view.is_server else "own features and edges"


def _best_guess(
    inputs: Mapping[str, Tensor], truth: np.ndarray, public: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, str]:
    """Return guesses [m, d] for people who are not public by the input that serves best on a quarter of the public."""
    everybody = rng.permutation(np.flatnonzero(public))
    # Chosen on people who are known and not judged: the best of many tries on the judged ones would be luck.
    fits, judges = np.split(everybody, [3 * len(everybody) // 4])
    errors: dict[tuple[str, float], float] = {}
    for name, rows in inputs.items():
        guess = _fitted(rows.numpy(), truth, fits)
        for ridge in _RIDGES:
            errors[name, ridge] = float(((guess(ridge, judges) - truth[judges]) ** 2).sum())
    name, ridge = min(errors, key=lambda tried: errors[tried])
    return _fitted(inputs[name].numpy(), truth, everybody)(ridge, np.flatnonzero(~public)), name


def _fitted(rows: np.ndarray, truth: np.ndarray, fits: np.ndarray) -> Callable[[float, np.ndarray], np.ndarray]:
    """Return (ridge, places) -> guesses [m, d] by ridge regression; ridge in units of the rows' mean square length."""
    centred = rows - rows[fits].mean(axis=0)
    centred /= max(math.sqrt(float((centred[fits] ** 2).sum())), 1e-300)
    mean = truth[fits].mean(axis=0)
    u, s, vt = np.linalg.svd(centred[fits], full_matrices=False)
    target = u.T @ (truth[fits] - mean)

    def guess(ridge: float, places: np.ndarray) -> np.ndarray:
        # Directions that the known people do not span would be divided by rounding errors: they are left out.
        shrunk = np.where(s > 1e-13, s / (s**2 + ridge), 0.0)
        guessed: np.ndarray = centred[places] @ (vt.T @ (shrunk[:, None] * target)) + mean
        return guessed

    return guess


def _beyond_mean(guess: np.ndarray, known_rows: np.ndarray) -> np.ndarray:
    """What is said beyond the mean of the known people, in deviations of each column."""
    standard: np.ndarray = (guess - known_rows.mean(axis=0)) / np.maximum(known_rows.std(axis=0), 1e-6)
    return standard


def _explained(guess: np.ndarray, truth: np.ndarray, public: np.ndarray) -> float:
    hidden = truth[~public]
    without = ((hidden - truth[public].mean(axis=0)) ** 2).sum()
    return float(1 - ((hidden - guess) ** 2).sum() / without) if without > 0 else 0.0


def _recognised(guess: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> float:
    """The share of people whose true row, among a thousand, is the nearest to what was guessed of them."""
    chosen = rng.permutation(len(truth))[:_SAME_ROWS]
    a, b = guess[chosen], truth[chosen]
    # The length of a guess is the same beside every candidate, and drops out of the comparison.
    distance = (b**2).sum(axis=1)[None] - 2 * a @ b.T
    return float((distance.argmin(axis=1) == np.arange(len(chosen))).mean())


def _best_similarity(view: View, victim: str) -> tuple[Tensor, str]:
    """Return a similarity of the people of a view [people, people], and what it was read from."""
    if view.holding is not None and view.setting.mode.opens_layer:
        h, own_products = view.first_layers(), _inner(as_dense(view.holding.features))
        if view.slopes:
            slopes = [torch.stack(each).sum(dim=0) for each in zip(*view.slopes.values(), strict=True)]
            rate = view.setting.training.shared_rate
            moved = [(now - then) / rate for now, then in itertools.pairwise(h)]
            steps = list(zip(moved, slopes, strict=False))
            return similarities_of(steps) - own_products, "slopes in the clear"
        width = view.setting.model.width
        spread = 2 * width / (view.setting.columns + width)  # E[W W^T] of initial weights
        return _inner(h[0]) / spread - own_products, "the first opened layer"
    solved = unmask_features(view, victim)
    if solved is not None:
        return _inner(solved[view.people]), "masked matrices and their masks"
    likenesses = solve_likenesses(view)
    if likenesses is not None:
        return likenesses, "z and A, round by round"
    tables = _opened(view, victim) or view.rows()
    # Words that are uniform by themselves would drown what is not.
    tables = {kind: rows for kind, rows in tables.items() if KINDS[kind].reveals != UNIFORM} or tables
    rows = [body for bodies in tables.values() for body in bodies]
    return _inner(unit_rows(rows, len(view.people))), ", ".join(tables) or "nothing"


def _correlation(scores: np.ndarray, true: np.ndarray) -> float:
    return float(np.corrcoef(scores, true)[0, 1]) if min(scores.std(), true.std()) > 0 else 0.0


def _inner(rows: Tensor) -> Tensor:
    return rows.double() @ rows.double().T
