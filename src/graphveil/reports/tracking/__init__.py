"""Trackers of experiments, which receive released values and nothing else."""
