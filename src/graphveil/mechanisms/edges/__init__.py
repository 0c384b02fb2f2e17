"""Mechanisms for neighbour lists and edges."""
