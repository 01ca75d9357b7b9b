"""What ptxas accepts, probe by probe, and whether ptx-lint agrees: see `tools/sweep_ptxas.py`."""
