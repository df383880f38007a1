"""A shop that writes e-mails: the application of this example."""
