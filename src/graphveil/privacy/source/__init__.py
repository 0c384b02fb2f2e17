"""Secure, permanent and seeded randomness."""
