"""A drafted declaration written into its folder, and the folder read as the declaration says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from graphveil.errors import DataError, UsedPathError
from graphveil.files.writing import write_text
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.drafts.answers import Answers, Declared, declare
from graphveil.graphs.drafts.draft import Draft, draft
from graphveil.graphs.load import read_folder


@dataclass(frozen=True)
class Checked:
    """What stands after a folder was read by its declaration; public, as the set of nodes is."""

    nodes: int
    features: int  # numbers a node
    classes: int
    private: tuple[str, ...]

    @property
    def sentence(self) -> str:
        protected = f"private: {', '.join(self.private)}" if self.private else "nothing is private"
        return f"checked: {self.nodes:,} people, {self.features:,} features, {self.classes:,} classes; {protected}"


def draft_folder(folder: Path, *, replace: bool = False) -> Draft:
    """Return the draft of a folder that may be declared.

    Args:
        folder: with tables.
        replace: whether a graph.toml may be there.

    Raises:
        UsedPathError: it has a graph.toml already.
        DataError: as of `draft`.
    """
    if not replace and os.path.lexists(folder / FILE):
        raise UsedPathError("exists already", where=str(folder / FILE), remedy="--replace writes it anew")
    return draft(folder)


def declare_folder(folder: Path, answers: Answers, *, replace: bool = False) -> Declared:
    """Write the graph.toml of a folder of tables, whole or not at all; nothing but the names of columns is read.

    Args:
        folder: with tables.
        answers: of its owner; InputError names all that are open.
        replace: whether a graph.toml that is there is written anew; else UsedPathError.
    """
    declared = declare(draft_folder(folder, replace=replace), answers)
    write_text(folder / FILE, declared.toml)
    return declared


def check_folder(folder: Path) -> Checked:
    """Read a declared folder, and return what stands.

    Args:
        folder: with tables and a graph.toml, which stays as it is.

    Raises:
        DataError: a cell, named by its file, line and column, is not as declared.
    """
    try:
        graph = read_folder(folder)
    except DataError as error:
        stays = f"{FILE} stays: correct the table, or declare again with --replace"
        remedy = f"{error.remedy}; {stays}" if error.remedy else stays
        raise DataError(error.what, where=error.where, allowed=error.allowed, remedy=remedy) from error
    schema = graph.schema
    return Checked(graph.num_nodes, schema.dimension, len(schema.classes), schema.private)
