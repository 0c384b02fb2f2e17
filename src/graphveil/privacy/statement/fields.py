"""A guarantee as flat fields, for hubs and registries that read no prose."""

from __future__ import annotations

from typing import Any

from graphveil.files.serial import number_to_json
from graphveil.privacy.accounting.printed import rounded_up
from graphveil.privacy.statement.guarantee import Guarantee


def privacy_fields(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as plain fields, what voids it first; prices are rounded up as on cards."""
    return {
        "void": guarantee.void,
        **_price(guarantee),
        "against": guarantee.against.text,
        "assumes": [fact.sentence for fact in guarantee.assumes],
        **({"parts": [_price(part) for part in guarantee.parts]} if guarantee.parts else {}),
    }


def _price(part: Guarantee) -> dict[str, Any]:
    return {
        "epsilon": number_to_json(float(rounded_up(part.epsilon))),
        "delta": float(rounded_up(part.delta)),
        "unit": part.unit.text,
        "unit_code": part.unit.code,
        "relation": part.relation,
        "trust_model": part.model,
    }
