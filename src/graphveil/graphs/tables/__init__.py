"""Graphs in files of tables."""
