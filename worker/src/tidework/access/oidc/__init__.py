"""Signing in by OpenID Connect: the code flow with PKCE, and a session in a cookie."""
