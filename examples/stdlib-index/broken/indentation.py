def describe(file):
    """A line that goes back to a level which nobody opened."""
        return file.name
    if file.suffix:
