"""Each person randomizes their neighbour list too; the server knows no topology."""
