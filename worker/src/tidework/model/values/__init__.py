"""Params and results: how Python values travel as JSON and come back as what they were."""
