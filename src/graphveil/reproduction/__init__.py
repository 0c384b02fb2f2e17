"""The tables and figures of the five papers this library grew out of, as data, and what runs them again."""
