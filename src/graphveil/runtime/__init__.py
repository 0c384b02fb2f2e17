"""What all rooms use: checks of parameters, late imports, compiled loops, sorted arrays, progress, words."""
