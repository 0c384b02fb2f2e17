"""People: what they were asked, what they paid, what they sent."""
