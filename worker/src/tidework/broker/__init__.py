"""The store of jobs: a protocol, Redis or Valkey behind it, and a model in memory."""
