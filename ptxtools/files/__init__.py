"""User files: bounded reads of endless input, and atomic writes."""
