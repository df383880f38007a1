"""The broker in memory: the reference model that the scripts are held against."""
