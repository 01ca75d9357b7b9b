"""The memory consistency model (8) as a program: small tests in, all executions that the axioms allow out."""
