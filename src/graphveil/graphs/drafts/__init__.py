"""Declarations drafted from the names of columns and the owner's answers; no value is read before they are complete."""
