"""Block models of noisy links."""
