"""What the families share: accounts, people, reports, networks and files."""
