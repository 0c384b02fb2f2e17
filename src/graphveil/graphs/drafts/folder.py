"""A drafted declaration written into its folder, and the folder read as the declaration says."""

from __future__ import annotations

import os
from pathlib import Path

from graphveil.errors import DataError, UsedPathError
from graphveil.files.writing import write_text
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.drafts.answers import Answers, Declared, declare
from graphveil.graphs.drafts.draft import draft
from graphveil.graphs.load import read_folder
from graphveil.runtime.words import count_of


def require_undeclared(folder: Path) -> None:
    """Refuse a folder that has a graph.toml already, by UsedPathError."""
    if os.path.lexists(folder / FILE):
        raise UsedPathError("exists already", where=str(folder / FILE), remedy="--replace writes it anew")


def declare_folder(folder: Path, answers: Answers, *, replace: bool = False) -> Declared:
    """Write the graph.toml of a folder of tables, whole or not at all; nothing but the names of columns is read.

    Args:
        answers: of its owner; InputError names all that are open.
        replace: whether a graph.toml that is there is written anew; else UsedPathError.
    """
    if not replace:
        require_undeclared(folder)
    declared = declare(draft(folder), answers)
    write_text(folder / FILE, declared.toml)
    return declared


def check_folder(folder: Path) -> str:
    """Read a declared folder, and return what stands: only what is declared, and how many people there are. Raises
    DataError: a cell, named by its file, line and column, is not as declared.
    """
    try:
        graph = read_folder(folder)
    except DataError as error:
        stays = f"{FILE} stays: correct the table, or declare again with --replace"
        remedy = f"{error.remedy}; {stays}" if error.remedy else stays
        raise DataError(error.what, where=error.where, allowed=error.allowed, remedy=remedy) from error
    schema = graph.schema
    private = f"private: {', '.join(schema.private)}" if schema.private else "nothing is private"
    counts = (graph.num_nodes, "person"), (schema.dimension, "feature"), (len(schema.classes), "class")
    return f"{', '.join(count_of(*each) for each in counts)}; {private}"
