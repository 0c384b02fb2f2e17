"""What is protected, from whom, on which assumptions: values, then sentences."""
