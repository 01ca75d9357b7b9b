"""The loop in machine code and its driver: control flow, barriers, workers, and what comes back to Python."""
