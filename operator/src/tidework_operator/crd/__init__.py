"""The CRDs, generated from the pydantic models: ``python -m tidework_operator.crd``."""
