"""PTX tools that work without a GPU."""
