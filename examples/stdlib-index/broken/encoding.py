def describe(file):
    """Bytes that are no UTF-8: the next line was saved as Latin-1."""
    return f"Größe von {file.name}"
