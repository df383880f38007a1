"""The application that the end-to-end tests run in worker pods."""
