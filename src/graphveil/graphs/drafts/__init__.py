"""Declarations drafted from the names of columns and a person's answers: no value is read before they are complete."""
