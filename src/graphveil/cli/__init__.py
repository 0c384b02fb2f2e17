"""The command ``graphveil``: parse, one library call, render. Heavy libraries load inside the commands."""

from graphveil.cli.app import main

__all__ = ["main"]
