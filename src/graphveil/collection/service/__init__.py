"""The collector's service: its doors, answers and pages."""
