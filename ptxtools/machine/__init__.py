"""The interface between programs and engines: launches, resident CTAs, waits, and the view of stopped lanes."""
