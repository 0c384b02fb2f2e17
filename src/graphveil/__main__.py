"""``python -m graphveil``: the command line."""

import sys

from graphveil.cli import main

if __name__ == "__main__":
    sys.exit(main())
