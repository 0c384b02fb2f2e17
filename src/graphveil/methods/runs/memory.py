"""How much memory the process has taken."""

from __future__ import annotations

import resource
import sys


def peak_memory_mb() -> float:
    """Return the most memory this process has held, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
