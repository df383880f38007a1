"""The Kubernetes operator of Tidework."""
