"""The syntax codes: title and page of each, for `ptx-lint --explain` and docs/rules.md."""

from __future__ import annotations

#: code -> (title, page). A page says what is wrong and why, shows an example, and what to write instead.
CODES: dict[str, tuple[str, str]] = {
    "PTX100": (
        "unexpected text",
        """What: the text is not valid PTX at this position: a comma, a `;`, an operand or a bracket is missing, or
        something is superfluous.

        Why: a statement that cannot be parsed cannot be checked. The statements around it are still checked.

        Example:

            add.s32 %r1, %r2 %r3;

        Better:

            add.s32 %r1, %r2, %r3;

        See: PTX ISA 4.3.""",
    ),
    "PTX101": (
        "character outside of PTX",
        """What: a character beyond ASCII, even in a comment or a string, or another one that no token can contain.

        Why: PTX source is ASCII text, and ptxas stops reading at any other byte. Such characters come from word
        processors (typographic quotes and dashes), from a byte order mark, from comments and file names in other
        languages, or from a file that is no text. A vertical tab counts where it stands between words. In comments and
        strings only the first such character is reported.

        Example:

            mov.u32 %r1, –1;

        Better:

            mov.u32 %r1, -1;

        See: PTX ISA 4.1.""",
    ),
    "PTX102": (
        "unterminated comment or string",
        """What: a `/*` without `*/`, or a `"` without another one after it.

        Why: it would include everything that follows.

        Example:

            .pragma "nounroll;

        Better:

            .pragma "nounroll";

        See: PTX ISA 4.2.""",
    ),
    "PTX103": (
        "malformed number",
        """What: a word that starts like a number but is not one.

        Why: integers are decimal, octal (0…), hexadecimal (0x…) or binary (0b…), with a capital U at the end for an
        unsigned one. Exact floating-point values are 0f with eight and 0d with sixteen hexadecimal digits; other
        floating-point values have no suffix.

        Example:

            mov.u32 %r1, 5u;
            mov.f32 %f1, 1.5f;

        Better:

            mov.u32 %r1, 5U;
            mov.f32 %f1, 1.5;

        See: PTX ISA 4.5.1, 4.5.2.""",
    ),
    "PTX104": (
        "constant out of range",
        """What: an integer beyond 64 bits, a floating-point value beyond the range of a double, or a count that is too
        large.

        Why: constants are 64 bits wide.

        Example:

            mov.b64 %rd1, 0x1ffffffffffffffff;

        See: PTX ISA 4.5.1, 4.5.2.""",
    ),
    "PTX105": (
        "wrong type in a constant expression",
        """What: an operator of a constant expression has operands of the wrong type.

        Why: integer and floating-point constants cannot be mixed or cast; `%`, `~`, `!`, shifts and
        bit operators take only integers; a 0f constant cannot be part of an expression.

        Example:

            mov.f32 %f1, 1 + 2.5;
            mov.f32 %f2, -0f3f800000;

        Better:

            mov.f32 %f1, 1.0 + 2.5;
            mov.f32 %f2, 0fbf800000;

        See: PTX ISA 4.5.4, 4.5.5.""",
    ),
    "PTX106": (
        "division by zero in a constant expression",
        """What: `/` or `%` with zero on the right. Both sides of `&&` and `||` and all parts of `?:` are evaluated.

        Why: the expression has no value.

        Example:

            .global .u32 x = 8 / (4 - 4);

        See: PTX ISA 4.5.5.""",
    ),
    "PTX107": (
        "wrong mask",
        """What: the mask before an address in an initialiser does not select exactly one byte.

        Why: the masks are 0xff, 0xff00, 0xff0000 and so on, up to 0xff00000000000000.

        Example:

            .global .u8 a[] = { 0xffff(table) };

        Better:

            .global .u8 a[] = { 0xff(table), 0xff00(table) };

        See: PTX ISA 5.4.4.""",
    ),
    "PTX108": (
        "malformed declaration or directive",
        """What: the parts of a declaration or directive are wrong, or in the wrong order.

        Why: a declaration is, in this order: a linking directive, a state space, an alignment and attributes, a vector
        length, a type, `.ptr` with its state space and alignment, the name. Directives take a fixed number of
        arguments.

        Example:

            .param .b8 .align 8 buffer[16];
            .entry k() .maxntid 1, 2, 3, 4 { ret; }

        Better:

            .param .align 8 .b8 buffer[16];
            .entry k() .maxntid 1, 2, 12 { ret; }

        See: PTX ISA 5.4, 11.""",
    ),
    "PTX109": (
        "offset subtracted from an address",
        """What: a `-` between a register or variable and a constant in an address.

        Why: an offset is added; it may be negative. ptxas does not accept the subtraction.

        Example:

            ld.global.u32 %r1, [%rd1-4];

        Better:

            ld.global.u32 %r1, [%rd1+-4];

        See: PTX ISA 6.4.1.""",
    ),
    "PTX115": (
        "preprocessor line",
        """What: a line that begins with `#`.

        Why: such lines are for the C preprocessor; PTX has none. Line markers (`# 1 "file.cu"`), which the
        preprocessor leaves in its output, are skipped.

        Example:

            #include "table.h"

        Better: run the text through `cpp -P` first.

        See: PTX ISA 4.1.""",
    ),
    "PTX116": (
        "unbalanced braces",
        """What: a `{` that is never closed, or a `}` that closes nothing.

        Why: functions cannot contain functions, so a header inside a body means that a `}` is missing before it.

        Example:

            .entry a() { ret;
            .entry b() { ret; }

        Better:

            .entry a() { ret; }
            .entry b() { ret; }

        See: PTX ISA 7.1.""",
    ),
    "PTX117": (
        "statement or directive in the wrong place",
        """What: an instruction, label or scope outside of a function, a module directive inside one, or anything but
        data in a `.section`. Only the first of several such statements in a row is reported.

        Why: each belongs to one level of a module.

        Example:

            .entry k() { .file 1 "k.cu" ret; }

        Better:

            .file 1 "k.cu"
            .entry k() { ret; }

        See: PTX ISA 4.3, 11.""",
    ),
    "PTX118": (
        "nested too deeply",
        """What: more than 200 scopes, or more than 64 brackets, inside one another.

        Why: no compiler generates this; the limit protects tools that traverse the module.""",
    ),
    "PTX119": (
        "unknown directive or type",
        """What: a word with a leading dot that is not a directive, state space or type of PTX.

        Why: usually a spelling mistake, or a directive newer than the PTX versions that this tool knows.

        Example:

            .reg .b33 %r<4>;

        Better:

            .reg .b32 %r<4>;

        See: PTX ISA 4.3.1, 5.2.""",
    ),
    "PTX120": (
        "not text",
        """What: the input contains NUL or many control characters, so it is binary data of an unknown kind.

        Why: PTX is text; containers, fatbins, cubins and ELF files are detected before the text is parsed.""",
    ),
    "PTX121": (
        "too many errors",
        """What: parsing stopped after 1000 errors.

        Why: the rest is unlikely to be PTX.""",
    ),
}
