"""Reports at rest."""
