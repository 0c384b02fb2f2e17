"""Writes a drafted declaration into its folder, and reads the folder by it."""

from __future__ import annotations

import os
from pathlib import Path

from graphveil.errors import DataError, UsedPathError
from graphveil.files.writing import write_text
from graphveil.graphs.declared.declaration import FILE
from graphveil.graphs.drafts.answers import Answers, DeclarationFile, declare
from graphveil.graphs.drafts.draft import read_draft
from graphveil.graphs.load import read_folder
from graphveil.runtime.words import count_of


def require_undeclared(folder: Path) -> None:
    """Refuse a folder that has a graph.toml already, by UsedPathError."""
    if os.path.lexists(folder / FILE):
        raise UsedPathError("exists already", where=str(folder / FILE), remedy="--replace writes it anew")


def declare_folder(folder: Path, answers: Answers, *, replace: bool = False) -> DeclarationFile:
    """Write the graph.toml of a folder of tables, whole or not at all; nothing but the names of columns is read.

    Args:
        answers: of its owner; InputError names the open questions.
        replace: whether an existing graph.toml is replaced; else UsedPathError.
    """
    if not replace:
        require_undeclared(folder)
    declared = declare(read_draft(folder), answers)
    write_text(folder / FILE, declared.toml)
    return declared


def check_folder(folder: Path) -> str:
    """Read a declared folder; return a summary of what is declared, and how many people there are.

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
