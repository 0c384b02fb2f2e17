"""Reports handed on, and what is learned from them."""
