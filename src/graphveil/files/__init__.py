"""Files of the library's own: read in one place, written whole or not at all."""
