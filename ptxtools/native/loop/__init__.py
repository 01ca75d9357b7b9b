"""The loop in machine code and its driver: control flow, barriers, workers, and the return to Python."""
