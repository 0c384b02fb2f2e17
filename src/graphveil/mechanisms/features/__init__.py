"""Mechanisms for feature vectors."""
