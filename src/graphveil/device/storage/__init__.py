"""What a device keeps."""
