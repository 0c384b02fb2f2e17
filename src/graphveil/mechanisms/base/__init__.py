"""What every mechanism stands on: private values, reports, guarantees and the public grid."""
