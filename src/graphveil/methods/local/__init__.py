"""Each person randomizes features and label; the server knows the topology."""
