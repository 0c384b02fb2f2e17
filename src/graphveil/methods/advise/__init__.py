"""Which method to take for a graph and a trust, what to expect of it, and which epsilon reaches a goal.

    rules       which method for which trust, and what was measured on public graphs
    facts       what is declared public about a graph
    rehearsal   made graphs that are like it, and what a method buys in them
    advice      the answer to one trust
    goal        the smallest epsilon that reaches a goal

Nothing private is read: what a trust protects, and what the owner declares private, is made anew.
"""
