"""What all parties agree on: messages, settings, states, publications and guarantees."""
