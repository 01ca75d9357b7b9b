"""Products of asynchronous tensor cores in machine code: decoding of operands, and sums as the chip makes them."""
