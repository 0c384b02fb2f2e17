"""A trusted curator trains behind noise."""
