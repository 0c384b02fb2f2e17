"""Shares, masks, seals, keys and private set intersection."""
