"""`graphveil compare` and `graphveil compare-runs`."""
