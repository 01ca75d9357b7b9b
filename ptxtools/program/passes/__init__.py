"""Passes over a lowered function or program: each makes it smaller or faster, or prepares it for an engine."""
