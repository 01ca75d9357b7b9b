"""Generations of tensor cores: which one a target has. What each does stands in `tensorcore`, which loads slowly."""

_GENERATIONS = {7: "volta", 8: "ampere", 9: "hopper", 10: "blackwell", 11: "blackwell", 12: "rtx_blackwell"}


def generation_of(target: str) -> str:
    """The generation of tensor cores that a target such as "sm_90a" has."""
    number = int("".join(c for c in target if c.isdigit()) or 75)
    if number in (75, 89):
        return "turing" if number == 75 else "ada"
    return _GENERATIONS.get(number // 10, "hopper")
