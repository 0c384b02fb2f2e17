"""Notebooks as pages: text and code as they are, outputs as text, pictures or tables.

With ``-D run_notebooks=1`` each is run first, in an empty folder, since the repository holds them without outputs.
"""

import tempfile
from collections.abc import Iterator
from typing import Any

import nbformat
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from nbclient import NotebookClient


def fenced(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


def fenced_output(output: dict[str, Any]) -> Iterator[str]:
    """Yield one output in its richest form that needs no script."""
    if output.get("name") == "stderr":
        return
    data = output.get("data", {"text/plain": output.get("text", "")})
    forms = {kind: "".join(text) for kind, text in data.items()}
    if "image/png" in forms:
        yield f"![what this cell draws](data:image/png;base64,{forms['image/png'].replace(chr(10), '')})"
    elif "image/svg+xml" in forms:
        yield fenced("{raw} html", forms["image/svg+xml"])
    elif "text/html" in forms:
        yield fenced("{raw} html", forms["text/html"])
    elif forms.get("text/plain", "").strip():
        yield fenced("text", forms["text/plain"])


def markdown(notebook: dict[str, Any]) -> str:
    """Return a notebook as one page of Markdown.

    Args:
        notebook: what the file says, in version 4 of the format.
    """
    parts: list[str] = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(fenced("python", text) if cell["cell_type"] == "code" else text)
        for output in cell.get("outputs", []):
            parts += fenced_output(output)
    return "\n\n".join(parts)


def run(notebook: Any) -> None:
    """Fill in the outputs of a notebook.

    Raises:
        CellExecutionError: a cell failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()


class NotebookParser(MystParser):
    """Reads the Markdown of a notebook."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        notebook = nbformat.reads(inputstring, as_version=4)
        if document.settings.env.config.run_notebooks:
            run(notebook)
        super().parse(markdown(notebook), document)


def setup(app: Any) -> dict[str, bool]:
    app.setup_extension("myst_parser")
    app.add_config_value("run_notebooks", False, "env", bool)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
