"""Where jobs run: slots and the event loop, their children, and what stops or replaces them."""
