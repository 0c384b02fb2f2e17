"""Graphs that a curator published."""
