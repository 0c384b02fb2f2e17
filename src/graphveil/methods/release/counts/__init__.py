"""Counts of classes around each node."""
