"""What a server that deals the masks of mode "shared-linear" gets out of holders' shares of z, one by one.

    share less what was dealt    y = Q W + P V + noise  mod 2^64        Q = -r' and V dealt, P, W and noise small
    without noise                V N = 0, so y N = Q (W N): W N exactly, W is what is small, then P = (y - Q W) V^-1
    with noise                   whoever knows some rows of P has  y - P V = Q W + noise: W is what is small
    low bits                     noise in whole steps leaves  sum = P W  mod 2^s: known rows give W without a lattice

The sum of all holders' shares is all that the server is meant to see: where shares are masked between holders, y is
uniform and none of this finds anything.  Rows of P are told apart by what they leave over: y - Q W - P V is small for
the right row.  Lattices are reduced, so columns must be few (some 60 take seconds).  Linear equations of words:

    exact    x = a^-1 b mod 2^64: inverse mod 2 by elimination, then doubled bit by bit, x <- x (2 - a x)
    small    the point of { c [I R] + 2^64 [0 c'] } that is nearest to a target: LLL, then nearest planes

Source: ours; "learning with errors" with far too few unknowns (Regev, STOC 2005); Lenstra, Lenstra, Lovasz, Math.
Annalen 261, 1982 (flint's implementation); Babai, Combinatorica 6, 1986.  Shapes: P [n, d], W [d, h].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphveil.attacks.federation.views import Recorded, View
from graphveil.attacks.limits import Limit, nothing
from graphveil.attacks.result import AttackResult, judge
from graphveil.errors import InputError, MissingExtraError
from graphveil.federation.core.setting import Setting
from graphveil.privacy.accounting.printed import rounded_up

MOST_COLUMNS = 128
_LARGEST_WEIGHT = 18  # bits of an entry of W
_ROOM = 7  # bits by which what is looked for is shorter than all else in the lattice
_WIDER, _WIDER_BY = 1.6, 8  # columns without noise: 64 (c - d) / c bits against those of W
_DEVIATIONS = 6
_WORD = 64


_DOUBLINGS = 6  # 2^6 = 64 bits
_PASSES = 4


def odd_columns(a: np.ndarray) -> np.ndarray:
    """Return r columns of a [r, c] with an odd determinant, or raise InputError: an inverse modulo 2^64 exists."""
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
        x = x @ (2 * identity - a @ x)
    return x


def reduced(left: int, right: np.ndarray) -> np.ndarray:
    """Return a reduced basis, one vector a row, of the lattice spanned by the rows of [left I, right] and [0, 2^64 I].
    Raises MissingExtraError without the package python-flint.

    Args:
        left: weight of the first numbers against the others.
        right: [r, c] words.
    """
    try:
        from flint import fmpz_mat
    except ImportError as error:
        what, remedy = "the package python-flint is not installed", "run: pip install 'graphveil[lattice]'"
        raise MissingExtraError(what, where="attack lattice", remedy=remedy) from error
    rows, columns = right.shape
    size = rows + columns
    basis = [[0] * size for _ in range(size)]
    for row in range(rows):
        basis[row][row] = left
        basis[row][rows:] = right[row].tolist()
    for place in range(rows, size):
        # These rows stand for the wrap-around of 64-bit words.
        basis[place][place] = 1 << 64
    # Exact integers: floating-point reduction loses the low bits, which are what the equations are about.
    short = fmpz_mat(basis).lll()
    return np.array([[int(short[i, j]) for j in range(size)] for i in range(size)], dtype=np.int64)


def from_nearest(targets: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return each target minus a near point of the lattice, words [t, size]: what is small, where it is small enough.

    Args:
        targets: [t, size] words.
        basis: of `reduced`.
    """
    q, triangle = np.linalg.qr(basis.T.astype(np.float64))
    rest = targets.copy()
    for _ in range(_PASSES):  # each pass is as exact as floats of the rest: the next one mends its rounding
        turned = rest.astype(np.float64) @ q
        steps = np.zeros(rest.shape)
        for place in reversed(range(len(basis))):
            steps[:, place] = np.rint(turned[:, place] / triangle[place, place])
            turned -= steps[:, place, None] * triangle[:, place]
        # In wrapping integers: floats choose the lattice point and never compute what is left over.
        rest = rest - steps.astype(np.int64) @ basis
    return rest


@dataclass(frozen=True)
class Equations:
    """y = q W + P v + noise, words: y [n, c], q [n, d], v [d, c], columns of one or of several rounds."""

    y: np.ndarray
    q: np.ndarray
    v: np.ndarray

    def first(self, columns: int) -> Equations:
        """The first columns alone."""
        return Equations(self.y[:, :columns], self.q, self.v[:, :columns])


def lattice(view: View, recorded: Recorded, *, people: int = 500, seed: int = 0) -> AttackResult:
    """Return how well the server tells a person's propagated features from another person's by holders' shares. Raises
    InputError for another mode or party, or too many columns, too few people or too much noise for a lattice;
    MissingExtraError without the package python-flint.

    Args:
        view: the server's.
        recorded: the truth, which scores the attack; with noise the attack is given the rows of P of some people, who
            are not judged.
        people: how many are judged.
    """
    require_shares(view.setting, "lattice")
    p, w = (part.numpy() for part in recorded.secrets())
    rng = np.random.default_rng([seed, 0x1A77])
    equations, known_count, figures = _equations(view), 0, {}
    order = rng.permutation(len(p))
    if math.isinf(view.setting.privacy.epsilon):
        weights, rows = solved(equations)
        figures["rows of P right, bit for bit"] = float((rows == p).all(axis=1).mean())
    else:
        known_count = _enough(view)
        weights = _weights_behind_noise(
            equations.first(view.setting.model.width), p, order[:known_count], _noise_bits(view)
        )
    here = equations.first(view.setting.model.width)  # of one round
    weights = weights[:, : here.y.shape[1]]
    figures["weights right, bit for bit"] = float((weights == w[:, : here.y.shape[1]]).mean())
    # With the right W what is left is P V and noise; with a wrong one it is uniform, and no row comes out small.
    left = here.y - here.q @ weights
    judged, decoys = _pairs(p, order[known_count : known_count + people], rng)
    right, wrong = (_smallness(left[judged] - p[rows] @ here.v) for rows in (judged, decoys))
    return _result(view, "lattice", (right, wrong), figures, known_count, seed)


def low_bits(view: View, recorded: Recorded, *, people: int = 500, seed: int = 0) -> AttackResult:
    """Return how well the server tells rows apart by the bits of the opened sum below the steps of the noise. Arguments
    and errors as of `lattice`; nothing is reduced, and the rows of P of some people are known always.
    """
    require_shares(view.setting, "low-bits")
    step = _step(view)
    p, w = (part.numpy() for part in recorded.secrets())
    rng = np.random.default_rng([seed, 0x10B])
    # A column of zeros says nothing of its weights, and makes every square matrix of rows even.
    used = (p != 0).any(axis=0)
    order, z = rng.permutation(len(p)), view.opened_words()[0].numpy()
    known_people = order[odd_columns(p[order][:, used].T)]
    weights = _centred(inverse(p[known_people][:, used]) @ z[known_people], step)
    judged, decoys = _pairs(p, np.setdiff1d(order, known_people)[:people], rng)
    right, wrong = (_smallness(_centred(z[judged] - p[rows][:, used] @ weights, step)) for rows in (judged, decoys))
    figures = {"weights right, bit for bit": float((weights == w[used]).mean())}
    return _result(view, "low-bits", (right, wrong), figures, len(known_people), seed)


def require_shares(setting: Setting, name: str) -> None:
    """Refuse a setting without shares of z, or with too many columns.

    Args:
        setting: the agreed run.
        name: of the attack, for the message.
    """
    if setting.protocol.mode != "shared-linear":
        mode = setting.protocol.mode
        raise InputError(f"mode {mode} sends the server no shares", where=name, allowed="mode shared-linear")
    if setting.columns > MOST_COLUMNS:
        columns = f"{setting.columns} columns of all holders together: a lattice of so many takes hours"
        raise InputError(columns, where=name, allowed=f"at most {MOST_COLUMNS}")


def solved(equations: Equations) -> tuple[np.ndarray, np.ndarray]:
    """Return W [d, c] and P [n, d] of equations without noise; words that mean nothing where they do not hold. Raises
    InputError for fewer than about 1.6 d columns, or rows than d.
    """
    y, q, v = equations.y, equations.q, equations.v
    inside = odd_columns(v)
    beside = np.setdiff1d(np.arange(v.shape[1]), inside)
    ratio = inverse(v[:, inside]) @ v[:, beside]  # y[beside] - y[inside] ratio = q (W[beside] - W[inside] ratio)
    # Only as many rows as unknowns, chosen so that the matrix is odd: an even one has no inverse among words.
    rows = odd_columns(q.T)
    target = inverse(q[rows]) @ (y[np.ix_(rows, beside)] - y[np.ix_(rows, inside)] @ ratio)
    small = from_nearest(np.concatenate([np.zeros_like(q[rows]), target], axis=1), reduced(1, ratio))
    weights = np.empty(v.shape, dtype=np.int64)
    weights[:, np.concatenate([inside, beside])] = small
    p = (y[:, inside] - q @ weights[:, inside]) @ inverse(v[:, inside])
    return weights, p


def _weights_behind_noise(equations: Equations, p: np.ndarray, known_people: np.ndarray, noise: float) -> np.ndarray:
    """Return W [d, c] of equations with noise of so many bits, from the rows of P [n, d] of some people."""
    # Balanced: the entries of W times this are as long as the noise, so that neither drowns the other in the lattice.
    weight = 1 << max(round(noise) - _LARGEST_WEIGHT, 0)
    basis = reduced(weight, equations.q[known_people].T)
    targets = (equations.y[known_people] - p[known_people] @ equations.v).T
    rest = from_nearest(np.concatenate([np.zeros((len(targets), p.shape[1]), np.int64), targets], axis=1), basis)
    return -(rest[:, : p.shape[1]] // weight).T


def _equations(view: View) -> Equations:
    """What a holder but the first sent, less what was dealt; as many rounds as are needed without noise."""
    setting, dealt = view.setting, view.dealt()
    first, name = setting.names[:2]
    sent = [m for m in view.messages if (m.kind, m.sender) == ("noisy-share", name)]
    columns = (
        math.ceil(_WIDER * setting.columns) + _WIDER_BY if math.isinf(setting.privacy.epsilon) else setting.model.width
    )
    rounds = sent[: math.ceil(columns / setting.model.width)]
    if len(rounds) * setting.model.width < columns:
        raise InputError(
            f"{len(sent)} rounds of {setting.model.width} columns", where="lattice", allowed=f"{columns} columns"
        )
    y = [dealt.without_masks(name, m.body, m.round).numpy() for m in rounds]
    v = [dealt.right(first, name, m.round).numpy() for m in rounds]
    return Equations(np.concatenate(y, axis=1), dealt.share(name).numpy(), np.concatenate(v, axis=1)).first(columns)


def _noise_bits(view: View) -> float:
    """Bits of the largest noise of one holder that is likely."""
    publication = view.setting.publication
    return 2 * view.setting.protocol.bits + math.log2(_DEVIATIONS * publication.sigma * publication.clip)


def _enough(view: View) -> int:
    """With how many known rows m W alone is short: (64 m + s d) / (m + d) bits, s of `weight`, against the noise."""
    noise = _noise_bits(view)
    room = _WORD - noise - _ROOM
    count = math.ceil(view.setting.columns * (_LARGEST_WEIGHT + _ROOM) / max(room, 1e-9)) + 1
    if count + view.setting.columns > min(2 * MOST_COLUMNS, view.nodes - 2):
        what = f"noise of 2^{noise:.0f} over {view.setting.columns} columns needs {count} known people"
        raise InputError(what, where="lattice", remedy="try a larger epsilon, or fewer columns")
    return count


def _step(view: View) -> int:
    """Steps of the noise in the words that are opened."""
    publication = view.setting.publication
    step = publication.clip * 2.0 ** (2 * view.setting.protocol.bits - publication.bits)
    if publication.public or not step.is_integer() or int(step) & (int(step) - 1):
        what = f"noise at epsilon {rounded_up(publication.epsilon)}, clip {publication.clip:g}"
        raise InputError(what, where="low-bits", allowed="a finite epsilon, a clip that is a power of two")
    return int(step)


def _centred(words: np.ndarray, step: int) -> np.ndarray:
    """Return words modulo a step, between -step / 2 and step / 2."""
    centred: np.ndarray = ((words + step // 2) & (step - 1)) - step // 2
    return centred


def _pairs(p: np.ndarray, judged: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return people, and for each of them somebody else with another row."""
    decoys = judged[rng.permutation(len(judged))]
    # Two people with one row cannot be told apart by anybody: such pairs would only draw the score towards a half.
    different = (p[judged] != p[decoys]).any(axis=1)
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
        limit = nothing("epsilon is inf: nothing is protected against the server")
    notes = ("a person's row of S^K X in fixed point, or another person's: the server is given both",)
    return judge(
        name,
        "a person's propagated features, by the server that dealt the masks",
        right,
        wrong,
        limit=limit,
        seed=seed,
        baseline=0.5,
        baseline_note="a coin",
        figures={**figures, "right of two rows": accuracy},
        notes=(*notes, f"it knows the rows of {known_count} others") if known_count else notes,
    )
