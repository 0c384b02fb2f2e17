"""Mechanisms for class labels."""
