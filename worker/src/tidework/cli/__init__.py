"""The command line. Each group of commands is a module; what they do lies below in the layers."""
