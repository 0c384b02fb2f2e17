"""The task that is signed: what people are asked, and by whom."""
