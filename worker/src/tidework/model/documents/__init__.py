"""JSON from outside: read strictly, with what its writer probably meant."""
