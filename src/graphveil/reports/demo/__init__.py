"""What `graphveil demo` tells: one private graph, three ways to trust, and a method whose private data buy nothing."""

from __future__ import annotations

#: The embedded graph: made, so that columns and connections both say part of a class.
DATA = "social-1000"
