"""How much memory children use, and what is done near the limit."""
