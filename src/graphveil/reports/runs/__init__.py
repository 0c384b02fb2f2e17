"""The folder, card and page of a training run."""
