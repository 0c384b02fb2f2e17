"""`graphveil demo`: one private graph, three kinds of trust, and a method whose private data buy nothing."""

from __future__ import annotations

#: The graph of the demo: synthetic, with features and edges that each predict a part of the class.
DATA = "social-1000"
