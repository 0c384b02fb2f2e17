"""`graphveil federation`."""
