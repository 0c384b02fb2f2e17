"""`graphveil studio`: a local page over the same library; everything that it starts is a command."""
