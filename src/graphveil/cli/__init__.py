"""The command ``graphveil``: parse, one library call, render. Heavy libraries load inside the commands.

Exit codes: 0 done; 1 internal error; 2 refused (the line on stderr says why); 130 interrupted.
"""

from graphveil.cli.app import main

__all__ = ["main"]
