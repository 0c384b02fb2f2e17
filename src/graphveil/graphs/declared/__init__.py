"""What an owner declares about columns and classes, and the reading of values by it."""
