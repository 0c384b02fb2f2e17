"""Lower bounds on the epsilon of any mechanism, method and release."""
