"""What a run would promise, disturb and cost, computed from public facts before anything is collected or trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from graphveil.files.serial import number_to_json
from graphveil.privacy import Guarantee
from graphveil.privacy.accounting.guessing import adversary


class Figures(Protocol):
    """What a family adds to a plan.

    Attributes:
        section: where its figures are in the JSON of a plan.
    """

    @property
    def section(self) -> str: ...

    def to_json(self) -> Any:
        """Return the figures as JSON types."""


@dataclass(frozen=True)
class Plan:
    """The answer of `runs.plan.plan`; every number comes from public facts and settings.

    Attributes:
        method, data: their names.
        settings: as the built method uses them.
        guarantee: what the run would promise; epsilon: of each unit.
        seconds, memory_mb: of one run without controls; report_bytes: what one person sends.
        advice: what to look at before running, a sentence each.
        figures: what the family adds: noise by degree, or what an epsilon buys; None: nothing is disturbed.
    """

    method: str
    data: str
    settings: Mapping[str, Any]
    guarantee: Guarantee
    epsilon: Mapping[str, float]
    seconds: float
    memory_mb: float
    report_bytes: float
    advice: tuple[str, ...]
    figures: Figures | None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types; the sections of other families are empty."""
        sections: dict[str, Any] = {"noise_to_signal": [], "links": None, "curator": None, "release": None}
        if self.figures is not None:
            sections[self.figures.section] = self.figures.to_json()
        return {
            "method": self.method,
            "data": self.data,
            "settings": spelled(self.settings),
            "guarantee": self.guarantee.to_dict(),
            "guarantee_sentence": self.guarantee.sentence(),
            "epsilon": spelled(self.epsilon),
            "adversary": adversary(self.guarantee),
            "noise_to_signal": sections["noise_to_signal"],
            "seconds": self.seconds,
            "memory_mb": self.memory_mb,
            "report_bytes": self.report_bytes,
            "advice": list(self.advice),
            **{key: section for key, section in sections.items() if key != "noise_to_signal"},
        }


def spelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with infinities as the text "inf", which JSON can hold."""
    # JSON has no infinity; Python would write one all the same, and nobody else could read it.
    return {name: number_to_json(v) if isinstance(v, float) else v for name, v in values.items()}
