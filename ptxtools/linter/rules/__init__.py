'''The warning rules, one per file.

A file's name is the code and the finding, such as `ptx502_shift_too_far.py`. No other code names it: the linter
discovers the files in this folder (`linter/registry.py`), and `--explain` and docs/rules.md print the docstrings. A
file:

    """PTX502 | title | sections of the manual

    What: ...
    Why: ...
    Example:
        shl.b32 %r1, %r2, 32;
    Better:
        mov.b32 %r1, 0;
    """

    CODE = "PTX502"

    @instructions("shl", "shr")
    def check(context, facts, line):
        if ...:
            context.warn(CODE, message, span)

The decorators in `linter/registry.py` say what a check inspects. `tests/check/test_pages.py` runs every example: the
first must have the finding, the better one must not.
'''
