"""What attacks leave behind."""
