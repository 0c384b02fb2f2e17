"""The tables and figures of the five papers behind this library, as data, and the code that reproduces them."""
