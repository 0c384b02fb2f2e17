"""What commands share: options, screens, tables and the console."""
