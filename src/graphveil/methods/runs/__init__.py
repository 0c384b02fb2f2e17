"""Whole runs: what there is, what it would cost, experiments and tuning."""
