"""What a party of a federation plans, keeps and shows."""
