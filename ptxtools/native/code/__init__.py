"""Code generation: the value algebra as LLVM IR, one handler for each operation, object code and its cache."""
