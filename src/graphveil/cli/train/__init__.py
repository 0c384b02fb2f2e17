"""`graphveil train`, `tune`, `plan` and `predict`: a method on a graph."""
