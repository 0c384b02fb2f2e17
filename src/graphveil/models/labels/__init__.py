"""Beliefs about labels, and pools of them."""
