"""Graphs of other programs copied into tables: files, arrays, databases."""
