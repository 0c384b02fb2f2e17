"""The output of a run: the run folder, the privacy card, the HTML page, tables and pictures."""
