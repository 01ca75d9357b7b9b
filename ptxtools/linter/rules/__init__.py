'''The warning rules, one in each file.

A file is named by its code and what it finds, such as `ptx502_shift_too_far.py`. Nothing else names it: the linter
finds the files in this folder (`linter/registry.py`), and `--explain` and docs/rules.md print the docstrings. In it:

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

`linter/registry.py` has the decorators: they say what a check looks at. `tests/check/test_pages.py` runs every example,
which must show the finding, and what is better, which must not.
'''
