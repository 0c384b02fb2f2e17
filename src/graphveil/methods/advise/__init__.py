"""Which method to take for a graph and a trust, what to expect of it, and which epsilon reaches a goal.

Nothing private is read: what a trust protects, and what the owner declares private, is made anew.
"""
