"""What an owner declares of columns and classes, and values read by it."""
