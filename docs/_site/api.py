"""``{public} MODULE``: every name of the module's ``__all__``, from its docstring."""

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util.docutils import SphinxDirective


def directive(module: str, name: str, value: Any, config: Any) -> list[str]:
    """Return what documents one name, as lines of reStructuredText.

    Args:
        config: Sphinx's, for the sections of docstrings.
    """
    whole = f"{module}.{name}"
    if inspect.isclass(value):
        return [f".. autoclass:: {whole}"]
    if inspect.isroutine(value):
        return [f".. autofunction:: {whole}"]
    if callable(value) and not hasattr(value, "__origin__"):
        text = str(GoogleDocstring(inspect.getdoc(value) or "", config))
        return [f".. py:function:: {whole}{signature(value)}", "", *(f"   {line}" for line in text.splitlines())]
    return [f".. py:data:: {whole}", "", f"   {contents_of(value)}"]


def signature(value: Any) -> str:
    """Return the words that a call takes, with defaults and without types, as `help` of a method does."""
    whole = inspect.signature(value)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in whole.parameters.values()]
    return str(whole.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def contents_of(value: Any) -> str:
    """Return what a constant holds, in words."""
    if inspect.ismodule(value):
        return f"The module ``{value.__name__}``. {(value.__doc__ or '').splitlines()[0]}"
    if isinstance(value, (Mapping, tuple)):
        return "One of " + ", ".join(f"``{key}``" for key in value) + "."
    return f"``{value}``"


class Public(SphinxDirective):
    """The names of a module in the order of the alphabet."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = import_module(self.arguments[0])
        lines = ["````{eval-rst}"]
        for name in sorted(module.__all__, key=str.lower):
            lines += [*directive(self.arguments[0], name, getattr(module, name), self.config), ""]
        return self.parse_text_to_nodes("\n".join([*lines, "````"]))


def dashes(app: Any, doctree: nodes.document) -> None:
    """Put a dash between a parameter and its description, where Sphinx has two hyphens."""
    for text in list(doctree.findall(lambda node: isinstance(node, nodes.Text) and node == " -- ")):
        text.parent.replace(text, nodes.Text(" – "))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("public", Public)
    app.connect("doctree-read", dashes)
    return {"parallel_read_safe": True}
