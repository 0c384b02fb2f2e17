"""Every check that scikit-learn has for a classifier: it passes, asks nothing here, or does not apply, and why."""

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import Any
from unittest import SkipTest

import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import estimator_checks as checks

from tests.methods.test_sklearn import ALL, BUILT
from tests.pages import page

PAGE = page("scikit-learn")
#: Of the checks in a section of the page: a list, or the first column of a table.
PASS, ASK_NOTHING, DO_NOT_APPLY = (
    sorted(set(re.findall(r"`(check_\w+)`", PAGE.split(f"## {title}")[1].split("\n## ")[0])))
    for title in ("Pass, for every method", "Ask nothing", "Do not apply")
)

#: Before scikit-learn 1.7 it ended where weights of samples are not taken.
OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
END_EARLY = ("check_sample_weight_equivalence_on_sparse_data",)


class Everything(LinearClassifierMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with every tag and attribute that brings checks with it; it is never fitted."""

    def __init__(self, class_weight: str | None = None) -> None:
        self.class_weight = class_weight

    def fit(self, X: object, y: object, sample_weight: object = None) -> None: ...

    def sparsify(self) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        tags.array_api_support = True
        return tags


def yielded() -> set[str]:
    """The names of all checks of a classifier, and of the one that `check_estimator` runs before them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(checks._yield_all_checks(Everything(), legacy=True))
    return {"check_estimator_cloneable", *(getattr(check, "func", check).__name__ for check in found)}


def run(name: str, check: str) -> None:
    """Run a check on a method; what it needs beside that is scikit-learn's own choice, the simplest."""
    asked = getattr(checks, check)
    if check.startswith("check_array_api"):
        asked = partial(asked, array_namespace="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked(name, BUILT[name]())


def here(names: list[str]) -> list[str]:
    """Those of some checks that the installed scikit-learn has, and does not end at once."""
    return [name for name in names if hasattr(checks, name) and not (OLD and name in END_EARLY)]


def test_every_check_has_its_entry_and_one_alone() -> None:
    listed = [*PASS, *ASK_NOTHING, *DO_NOT_APPLY]
    assert len(listed) == len(set(listed))
    assert yielded() <= set(listed), f"the page lacks {sorted(yielded() - set(listed))}"
    rows = re.findall(r"^\| `check_\w+` \| (.+) \|$", PAGE, flags=re.M)
    assert len(rows) == len(ASK_NOTHING) + len(DO_NOT_APPLY) and min(map(len, rows)) > 20


@ALL
@pytest.mark.parametrize("check", here(PASS))
def test_what_is_said_to_pass_passes(name: str, check: str) -> None:
    run(name, check)


@pytest.mark.parametrize("check", here(ASK_NOTHING))
def test_what_asks_nothing_ends_at_once(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted or predicted in it."""
    asked: list[str] = []
    for method in ("fit", "predict", "predict_proba", "score"):
        monkeypatch.setattr(
            f"graphveil.methods.base.estimator.Estimator.{method}", lambda *_, **__: asked.append("called")
        )
    try:
        run("lpgnn", check)
    except SkipTest:
        return
    assert not asked


@pytest.mark.parametrize("check", here(DO_NOT_APPLY))
def test_what_does_not_apply_does_not_pass(check: str) -> None:
    """Else it belongs among those that pass. Those of array libraries are skipped unless SciPy takes them."""
    with pytest.raises((AssertionError, AttributeError, TypeError, ValueError, SkipTest)):
        run("lpgnn", check)
