"""A trusted curator publishes a private graph once."""
