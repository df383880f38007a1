def describe(file):
    """A bracket that is opened and never closed."""
    return ", ".join([file.name, file.suffix)
