"""Licences of what graphveil installs, read from the metadata of the installed packages: ``make licences``."""

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

#: Extras of users; those of developers (test, dev, site, benchmarks) install nothing beside a model.
EXTRAS = ("collect", "keyring", "ogb", "shap", "optuna", "mlflow", "tensorboard", "wandb", "ray")
COPYLEFT = re.compile(r"GPL|General Public|MPL|Mozilla|EPL|Eclipse", re.IGNORECASE)


def required(extra: str) -> dict[str, Distribution | None]:
    """Return by name every package that graphveil with this extra ("": none) needs, over any number of steps.

    None: not installed here, so its own needs are not known either.
    """
    packages: dict[str, Distribution | None] = {}
    waiting = [("graphveil", extra)]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            packages[name] = None
            continue
        if name != "graphveil":
            packages[name] = package
        for line in package.requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": part}) for part in {"", wanted}):
                key = re.sub(r"[-_.]+", "-", requirement.name).lower()
                steps = {(key, part) for part in ("", *requirement.extras)} - seen
                seen |= steps
                waiting += steps
    return packages


def licence(package: Distribution) -> str:
    """Return the licence as the package states it: an expression, classifiers, or the first line of its text."""
    facts = package.metadata
    classifiers = [line.rsplit(" :: ")[-1] for line in facts.get_all("Classifier") or [] if line.startswith("License")]
    text = (facts.get("License") or "").strip().split("\n")[0]
    return facts.get("License-Expression") or " or ".join(classifiers) or text or "not stated"


def licences() -> str:
    """Return a table of every package with its version, its licence and what installs it."""
    takers: dict[str, list[str]] = {}
    packages = base = required("")
    for extra in EXTRAS:
        more = required(extra)
        packages = {**packages, **more}
        for name in more.keys() - base:
            takers.setdefault(name, []).append(f"`[{extra}]`")
    rows, copyleft, absent = [], [], []
    for name, package in sorted(packages.items()):
        if package is None:
            absent.append(f"`{name}`")
            continue
        stated = licence(package)
        rows.append((name, package.version, stated, ", ".join(takers.get(name, ["graphveil"]))))
        if COPYLEFT.search(stated):
            copyleft.append(f"{name} ({stated})")
    head = ("package", "version", "licence", "installed with")
    table = "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))
    return "\n\n".join(
        [
            f"{len(rows)} packages. Copyleft, by what they state: {', '.join(copyleft) or 'none'}.",
            f"Not installed where this was made: {', '.join(absent) or 'none'}.",
            table,
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(licences() + "\n")
