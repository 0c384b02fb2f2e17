"""The parts of all reports: cards, figures, words and files."""
