"""The codes of the warning rules. Each has its page in `ptxtools.linter.pages`, which `--explain` prints."""

from __future__ import annotations

# --- 5: hazards, what runs wrong --------------------------------------------------------------------------------------
CONSTANT_TRUNCATED = "PTX501"
SHIFT_TOO_FAR = "PTX502"
DIVISION_BY_ZERO = "PTX503"
INITIALISER_TRUNCATED = "PTX504"
UNREACHABLE = "PTX510"
FALLS_OFF_END = "PTX511"
RESULT_DISCARDED = "PTX512"
NEVER_WRITTEN = "PTX520"
DIVERGENT_BARRIER = "PTX530"
EMPTY_BARRIER = "PTX531"
OUT_OF_BOUNDS = "PTX540"
MISALIGNED = "PTX541"
NARROW_ADDRESS = "PTX542"
BLOCK_TOO_LARGE = "PTX550"
CLUSTER_TOO_LARGE = "PTX551"
NO_EFFECT = "PTX552"
REPEATED_DIRECTIVE = "PTX553"
REGISTER_LIMIT = "PTX554"
UNKNOWN_PRAGMA = "PTX555"

# --- 6: portability and deprecation -----------------------------------------------------------------------------------
DEPRECATED = "PTX601"
NO_ADDRESS_SIZE = "PTX602"

# --- 7: performance ---------------------------------------------------------------------------------------------------
GENERIC_ACCESS = "PTX701"
DIVISION_BY_POWER = "PTX702"
