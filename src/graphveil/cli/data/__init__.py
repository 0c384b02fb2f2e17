"""``graphveil data``."""
