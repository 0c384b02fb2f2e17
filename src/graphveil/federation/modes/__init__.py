"""The program that each party runs in each mode."""
