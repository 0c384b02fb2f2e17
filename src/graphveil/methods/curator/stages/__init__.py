"""Stages of training with noisy sums between them."""
