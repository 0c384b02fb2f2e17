"""What friends' answers say of a person's class: their part of one round of belief propagation.

    before_u = p(class u | labels)                    after_u = p(class u | labels, the answer of u)
    e_v(y) = sum_{u in N(v)} t_uv log( sum_x after_u(x) H(x, y) / sum_x before_u(x) H(x, y) )

H and t_uv are those of `belief`.  A ratio, because what friends' labels say is in before_v already; and nobody's own
answer takes part in e_v.  The homophily is that of the labels, as reported: how alike answers of friends are does not
enter, since most of it only says again how alike their classes are.
TEMPER was chosen with answers of validation nodes of Caltech36, Reed98 and Johns Hopkins55 at epsilon 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphveil.models.labels.belief import Edges, coupling_of, edge_weights

if TYPE_CHECKING:
    from torch import Tensor

TEMPER, DISCOUNT = 0.5, 0.25


def heard_of_friends(edges: Edges, before: Tensor, after: Tensor, prior: Tensor, homophily: float) -> Tensor:
    """Return e [n, c].

    Args:
        edges: of the public graph.
        before: [n, c], from labels alone.
        after: [n, c], with each one's own answer; as before for those who gave none.
        prior: pi [c]; homophily: h.
    """
    coupling = coupling_of(prior, homophily)
    change = (after @ coupling).clamp_min(1e-9).log() - (before @ coupling).clamp_min(1e-9).log()
    return edges.into.times(change[edges.sender] * edge_weights(edges, TEMPER, DISCOUNT))
