"""The memory consistency model (8) as a program: small tests in, all executions that the axioms allow out."""

#: The models, by the version of the manual that has them, and the one that is meant where none is named.
MODELS = ("6.0", "7.5", "8.x")
DEFAULT_MODEL = "8.x"
