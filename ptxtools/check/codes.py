"""The codes of the validity rules. Each has its page in `ptxtools.check.pages`, which `--explain` prints.

PTX1xx (syntax) and the opcode codes PTX110 to PTX114 and PTX210 come from the packages `syntax` and `isa`.
"""

from __future__ import annotations

# --- 1: syntax (the others of this group belong to the package `syntax`, which owns this page, too) -------------------
MISSING_MARK = "PTX100"
TOO_MANY = "PTX121"

# --- 2: names, types and operands -------------------------------------------------------------------------------------
UNDECLARED = "PTX201"
REDECLARED = "PTX202"
WRONG_KIND_OF_NAME = "PTX203"
INCONSISTENT = "PTX204"
BAD_COMPONENT = "PTX205"

OPERAND_COUNT = "PTX220"
OPERAND_TYPE = "PTX221"
OPERAND_SIZE = "PTX222"
OPERAND_KIND = "PTX223"
CONSTANT_KIND = "PTX224"
CONSTANT_RANGE = "PTX225"
VECTOR_LENGTH = "PTX226"
VECTOR_ELEMENTS = "PTX227"
SINK = "PTX228"
NEGATION = "PTX229"

ADDRESS_FORM = "PTX240"
ADDRESS_SPACE = "PTX241"
ADDRESS_REGISTER = "PTX242"
PARAMETER_ACCESS = "PTX243"

GUARD = "PTX250"
SPECIAL_REGISTER = "PTX251"

CALL_TARGET = "PTX260"
CALL_COUNT = "PTX261"
CALL_ARGUMENT = "PTX262"
CALL_PROTOTYPE = "PTX263"
BRANCH_TARGET = "PTX264"

# --- 3: version and target --------------------------------------------------------------------------------------------
NEEDS_VERSION = "PTX301"
NEEDS_TARGET = "PTX302"
UNKNOWN_VERSION = "PTX303"
UNKNOWN_TARGET = "PTX304"
TARGET_NEEDS_VERSION = "PTX305"
TARGET_OPTION = "PTX306"
REMOVED = "PTX307"
ADDRESS_SIZE = "PTX308"
NEVER_ACCEPTED = "PTX309"

# --- 4: directives and module structure -------------------------------------------------------------------------------
HEADER = "PTX401"
DIRECTIVE_PLACE = "PTX410"
DIRECTIVE_CONFLICT = "PTX411"
DIRECTIVE_VALUE = "PTX412"
DIRECTIVE_LACKS = "PTX413"
LINKAGE = "PTX420"
DECLARATION_SPACE = "PTX421"
DECLARATION_TYPE = "PTX422"
DECLARATION_SHAPE = "PTX423"
ALIGNMENT = "PTX424"
ATTRIBUTE = "PTX425"
INITIALISER_PLACE = "PTX426"
INITIALISER_TYPE = "PTX427"
INITIALISER_COUNT = "PTX428"
INITIALISER_SYMBOL = "PTX429"
PARAMETER = "PTX430"
RESULT = "PTX431"
ALIAS = "PTX432"
TOO_LARGE = "PTX433"
UNDEFINED = "PTX440"

# --- 6: a warning -----------------------------------------------------------------------------------------------------
TOLERATED = "PTX610"
