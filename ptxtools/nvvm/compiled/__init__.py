"""Loops over the bytes and names of a large text in machine code: `scan` finds lines and names, `flow` follows names
through functions. They are written in a part of Python (`notation`), and are functions of Python, too."""
