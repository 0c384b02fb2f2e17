"""Published methods to compare with."""
