"""A collection rehearsed with made-up people."""
