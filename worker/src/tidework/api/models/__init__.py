"""What the API answers: one module of pydantic models per resource."""
