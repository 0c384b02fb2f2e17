"""The results of attacks: their files, figures and sections of cards."""
