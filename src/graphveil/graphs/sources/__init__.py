"""Graphs that lie elsewhere, copied into tables: files of other programs, arrays, databases."""
