"""The attack's own copy of mode "shared-linear" with two protections left out, to show what they are for.

    shares    each holder's share of P is what the server dealt it; each share of z goes to the server as it is,
              without masks between holders
    noise     whole steps, nothing below a step

P and W are those of a simulated run, keys and masks those that its server dealt.  Nobody else runs this.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from graphveil.attacks.federation.views import Message, Recorded
from graphveil.federation.core.publication import Publication
from graphveil.federation.modes.dealer_view import DealerView
from graphveil.mechanisms.samplers.rounded_normal import RoundedNormal
from graphveil.privacy import Randomness


def bare(recorded: Recorded, *, randomness: Randomness) -> Recorded:
    """Return a run, recorded with what parties remember, in which holders send the server bare shares.

    Args:
        randomness: of the noise.
    """
    dealt = recorded.view(recorded.setting.server).dealt()
    shares = _dealt_shares(dealt, recorded.secrets()[0])

    def instead(message: Message) -> Message:
        if message.kind != "noisy-share":
            return message
        noise = _noise(recorded.setting.publication, message.body, recorded.setting.protocol.bits, randomness)
        share = dealt.share_of_z(message.sender, shares, recorded.weight_shares(message.round), message.round)
        return replace(message, body=share + noise)

    return replace(recorded, messages=tuple(map(instead, recorded.messages)))


def _dealt_shares(dealt: DealerView, p: Tensor) -> dict[str, Tensor]:
    """Return shares of P of which all but the first were dealt."""
    first, *dealt_holders = dealt.setting.names
    shares = {name: dealt.share(name) for name in dealt_holders}
    # The first holder's share is what makes the sum right, as in the protocol: the others' are expanded from dealt
    # keys.
    return {first: p - torch.stack(list(shares.values())).sum(dim=0), **shares}


def _noise(to: Publication, like: Tensor, bits: int, randomness: Randomness) -> Tensor:
    """Return one holder's noise in whole steps."""
    if to.public:
        return torch.zeros_like(like)
    sigma = to.sigma * 2.0**to.bits
    steps = RoundedNormal(sigma, math.ceil(to.cut * sigma)).draw(like.numel(), randomness)
    return torch.round(torch.from_numpy(steps).double() * (to.clip * 2.0 ** (2 * bits - to.bits))).long().view_as(like)
