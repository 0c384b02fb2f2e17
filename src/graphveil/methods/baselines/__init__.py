"""Plain networks on raw data, to compare with; they protect nothing."""
