"""Trackers of experiments, which are handed released values and nothing else."""
