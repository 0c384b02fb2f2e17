"""The graph as a value: parts, schema, checks and splits."""
