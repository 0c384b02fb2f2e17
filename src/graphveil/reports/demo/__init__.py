"""What `graphveil demo` tells: one private graph, three ways to trust, and a method whose private data buy nothing."""
