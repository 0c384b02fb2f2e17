"""Epsilon arithmetic, over dp-accounting."""
