"""What the running program is made of: late imports, exported names, compiled loops, progress."""
