"""The Kubernetes operator of Tidework. This release is a skeleton: see `__main__`."""
