"""Attacks on what a party of a federation sees."""
