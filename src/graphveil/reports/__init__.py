"""What a run leaves behind: the run folder, the privacy card, the HTML page, tables and pictures."""
