"""A network on released features and labels."""
