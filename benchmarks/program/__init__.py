"""What runs in the environments of the systems: the standard library is all there is."""
