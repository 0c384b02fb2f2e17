"""The card of a published graph."""
