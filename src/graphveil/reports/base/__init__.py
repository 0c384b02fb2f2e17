"""What every report is made of: cards, figures, words and files."""
