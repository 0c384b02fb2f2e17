"""`graphveil collect` and `graphveil device`."""
