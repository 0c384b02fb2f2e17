"""Runs and mechanisms side by side."""
