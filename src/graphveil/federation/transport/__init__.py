"""How messages travel between parties."""
