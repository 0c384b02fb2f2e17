"""What a server that deals the masks of mode "shared-linear" gets out of holders' shares of z, one by one.

    share of the first holder, those who train, round r       s_r = Z_1 + E_G a_r + noise_r   mod 2^64
    E_G = G - U', a_r and U' dealt, a_1 = 0, so               y_r = s_r - s_1 + U' a_r = G a_r + noise_r - noise_1
    noise in whole steps                                      y a^-1 = G   modulo a step, or 2^64 without noise
    low bits                                                  sum of all shares of round 1 = P W_0  modulo a step

Where shares are masked between holders, y is uniform and none of this finds anything.  Where they are not, rows of G, a
person's likeness to all who train, are told apart by what they leave over: y - G a is as small as noise for the right
row, and uniform for any other; and as many columns in all rounds as people who train give all of G.
An inverse of words: modulo 2 by elimination, then doubled bit by bit, x <- x (2 - a x).

The sum of all holders' shares is all that the server is meant to see, with noise down to its lowest bit: with noise in
whole steps, whoever knows as many rows of P as it has columns has W_0, and tells all other rows apart.
Source: ours; inverses by Newton's iteration (Hensel lifting).  Shapes: P [t, d], W_0 [d, h], G [t, t], a [t, h].
"""

from __future__ import annotations

import math

import numpy as np
import torch

from graphveil.attacks.federation.views import Recorded, View
from graphveil.attacks.limits import Limit, no_limit
from graphveil.attacks.result import AttackResult, judge
from graphveil.errors import InputError
from graphveil.federation.core.setting import Setting
from graphveil.federation.crypto.ring import matmul
from graphveil.privacy.accounting.printed import rounded_up

_WORD = 64
_DOUBLINGS = 6  # 2^6 = 64 bits
#: Columns beside a square: all its rows are dependent modulo 2 with probability 2^-32.
_SPARE = 32
#: The largest square that is inverted, which takes seconds.
_MOST = 1_024


def shares(view: View, recorded: Recorded, *, people: int = 500, seed: int = 0) -> AttackResult:
    """Return how well the server tells a person's likenesses from another person's by single holders' shares.

    Args:
        recorded: the truth, which scores the attack.
        people: how many of those who train are judged.

    Raises:
        InputError: for another mode, or a single publication.
    """
    require_shares(view.setting, "shares")
    gram = recorded.secret("gram")[: len(view.people)].numpy()
    y, a = _equations(view)
    figures = {}
    if _SPARE + len(gram) <= a.shape[1] and len(gram) <= _MOST:
        likenesses = _centred(solve_words(y, a), _step(view.setting))
        figures["likenesses right, bit for bit"] = float((likenesses == gram).mean())
    judged, decoys = _pairs(gram, np.arange(len(gram)), people, np.random.default_rng([seed, 0x1A77]))
    # One round is enough to tell two rows apart.
    y, a = (words[:, : view.setting.model.width] for words in (y, a))
    right, wrong = (_smallness(y[judged] - _product(gram[rows], a)) for rows in (judged, decoys))
    return _result(view, "shares", (right, wrong), figures, 0, seed)


def low_bits(view: View, recorded: Recorded, *, people: int = 500, seed: int = 0) -> AttackResult:
    """Return how well the server tells rows apart by the bits of the opened sum below the steps of the noise.

    Args:
        recorded: the truth, which scores the attack, and gives it the rows of P of some people, who are not judged.
        people: how many of those who train are judged.

    Raises:
        InputError: for another mode, no noise, or too few people for as many columns.
    """
    require_shares(view.setting, "low-bits")
    step = _step(view.setting)
    if not step:
        what = f"noise at epsilon {rounded_up(view.setting.privacy.epsilon)}"
        raise InputError(what, where="low-bits", allowed="a finite epsilon")
    z, p = view.openings[0].z.numpy(), recorded.secret("p")[: len(view.people)].numpy()
    w, rng = recorded.secret("w").numpy(), np.random.default_rng([seed, 0x10B])
    # A column of zeros says nothing of its weights, and makes every square matrix of rows even.
    used = (p != 0).any(axis=0)
    order = rng.permutation(len(p))
    known_people = order[odd_columns(p[order][:, used].T)]
    weights = _centred(_product(inverse(p[known_people][:, used]), z[known_people]), step)
    judged, decoys = _pairs(p, np.setdiff1d(order, known_people), people, rng)
    right, wrong = (_smallness(_centred(z[judged] - p[rows][:, used] @ weights, step)) for rows in (judged, decoys))
    figures = {"weights right, bit for bit": float((weights == w[used]).mean())}
    return _result(view, "low-bits", (right, wrong), figures, len(known_people), seed)


def require_shares(setting: Setting, name: str) -> None:
    """Refuse a setting in which there is nothing to attack.

    Args:
        name: of the attack, for the message.

    Raises:
        InputError: for another mode, or a single publication, in which A is 0.
    """
    if not setting.mode.opens_sum:
        raise InputError(
            f"mode {setting.mode.name} sends the server no shares", where=name, allowed="mode shared-linear"
        )
    if name == "shares" and setting.publications < 2:
        raise InputError("one publication", where=name, allowed="two or more", remedy="lower republish")


def solve_words(y: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return x of x a = y, words [n, t]; InputError for equations that are dependent modulo 2.

    Args:
        y: words [n, c].
        a: words [t, c], c > t.
    """
    columns = odd_columns(a[:, : len(a) + _SPARE])
    return _product(y[:, columns], inverse(a[:, columns]))


def odd_columns(a: np.ndarray) -> np.ndarray:
    """Return r columns of which words [r, c] have an odd determinant: an inverse modulo 2^64 exists; InputError for
    rows that are dependent modulo 2."""
    # A determinant is odd exactly where the matrix has an inverse modulo 2, so elimination over bits is enough.
    m = (a & 1).astype(np.uint8)
    independent: list[int] = []
    for column in range(a.shape[1]):
        row = len(independent)
        pivots = np.flatnonzero(m[row:, column])
        if len(pivots):
            m[[row, row + pivots[0]]] = m[[row + pivots[0], row]]
            nonzero = np.flatnonzero(m[:, column])
            m[nonzero[nonzero != row]] ^= m[row]
            independent.append(column)
        if len(independent) == len(m):
            return np.array(independent)
    allowed = "as many people of different features as columns, or more"
    raise InputError("the equations are dependent modulo 2", where="attack", allowed=allowed)


def inverse(a: np.ndarray) -> np.ndarray:
    """Return the inverse modulo 2^64 of a square matrix of words with an odd determinant."""
    size = len(a)
    identity = np.eye(size, dtype=np.int64)
    # Modulo 2 first: an integer matrix has an inverse modulo 2^64 exactly where its low bits have one.
    m = np.concatenate([a & 1, identity], axis=1).astype(np.uint8)
    for column in range(size):
        row = column + np.flatnonzero(m[column:, column])[0]
        m[[column, row]] = m[[row, column]]
        nonzero = np.flatnonzero(m[:, column])
        m[nonzero[nonzero != column]] ^= m[column]
    x: np.ndarray = m[:, size:].astype(np.int64)
    for _ in range(_DOUBLINGS):
        # Newton's step doubles the right low bits each time; int64 wraps around, which is arithmetic modulo 2^64.
        x = _product(x, 2 * identity - _product(a, x))
    return x


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # torch's product of words is many times faster than numpy's.
    left, right = (torch.from_numpy(np.ascontiguousarray(words)) for words in (a, b))
    product: np.ndarray = matmul(left, right).numpy()
    return product


def _equations(view: View) -> tuple[np.ndarray, np.ndarray]:
    """Return y [t, c] and a [t, c] of all rounds but the first, side by side, of the first holder, words."""
    first, people = view.setting.names[0], len(view.people)
    shares = {m.round: m.body for m in view.of_training() if (m.kind, m.sender) == ("noisy-share", first)}
    start, *rounds = sorted(shares)
    a = torch.cat([view.dealt.share_of_a(first, round - 1) for round in rounds], dim=1)
    moved = torch.cat([shares[round] - shares[start] for round in rounds], dim=1)
    return (moved + matmul(view.dealt.summed("G")[:people], a)).numpy(), a.numpy()


def _step(setting: Setting) -> int:
    """Steps of the noise in the words that are opened, a power of two; 0 without noise."""
    dither = setting.dither_of(setting.publication)
    return 0 if dither is None else 1 << dither.step_bits


def _centred(words: np.ndarray, step: int) -> np.ndarray:
    """Return words modulo a step, between -step / 2 and step / 2; as they are for step 0."""
    centred: np.ndarray = ((words + step // 2) & (step - 1)) - step // 2 if step else words
    return centred


def _pairs(
    rows: np.ndarray, candidates: np.ndarray, people: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return people of the candidates, and for each of them somebody else with another row."""
    judged = rng.permutation(candidates)[:people]
    decoys = judged[rng.permutation(len(judged))]
    # Two people with one row cannot be told apart by anybody: such pairs would only draw the score towards a half.
    different = (rows[judged] != rows[decoys]).any(axis=1)
    return judged[different], decoys[different]


def _smallness(words: np.ndarray) -> np.ndarray:
    """Return a score of each row [n]: bits that its largest entry is shorter than a word."""
    smallness: np.ndarray = _WORD - np.log2(1.0 + np.abs(words.astype(np.float64)).max(axis=1))
    return smallness


def _result(
    view: View, name: str, scores: tuple[np.ndarray, np.ndarray], figures: dict[str, float], known_count: int, seed: int
) -> AttackResult:
    right, wrong = scores
    accuracy = float(((right > wrong) + 0.5 * (right == wrong)).mean()) if len(right) else 0.5
    epsilon, delta = view.setting.privacy.epsilon, view.setting.privacy.delta
    limit = Limit(epsilon, delta, "epsilon of one published row in all rounds")
    if math.isinf(epsilon):
        limit = no_limit("epsilon is inf: nothing is protected against the server")
    notes = ("a person's row in fixed point, or another person's: the server is given both",)
    return judge(
        name,
        "a person's propagated features, or likeness to others, by the server that dealt the masks",
        right,
        wrong,
        limit=limit,
        seed=seed,
        baseline=0.5,
        baseline_note="a coin",
        figures={**figures, "right of two rows": accuracy},
        notes=(*notes, f"it knows the rows of {known_count} others") if known_count else notes,
    )
