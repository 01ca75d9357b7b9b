"""The three commands. No logic lives here: options in, library calls, text out."""
