"""Families of litmus tests, each with a rule from the manual's sections that decides it."""

from itertools import product

PLACES = {
    "one CTA": ("cta 0,gpu 0", "cta 0,gpu 0"),
    "two CTAs": ("cta 0,gpu 0", "cta 1,gpu 0"),
    "two GPUs": ("cta 0,gpu 0", "cta 0,gpu 1"),
}
#: 8.5: the places whose threads a scope includes.
INCLUDES = {"cta": {"one CTA"}, "gpu": {"one CTA", "two CTAs"}, "sys": set(PLACES)}
SCOPES = (("cta", "cta"), ("gpu", "gpu"), ("sys", "sys"), ("cta", "gpu"), ("gpu", "sys"))


def mutual(scopes, place):
    """8.7: each scope includes the other thread."""
    return all(place in INCLUDES[scope] for scope in scopes)


def text(name, place, threads, condition):
    head = " | ".join(f"P{n}@{where}" for n, where in enumerate(PLACES[place]))
    columns = [thread.split("; ") for thread in threads]
    longest = max(map(len, columns))
    rows = [" | ".join(c[at] if at < len(c) else "" for c in columns) + " ;" for at in range(longest)]
    return "\n".join([f"PTX {name}", "{ x=0; y=0; f=0; }", head + " ;", *rows, f"exists ({condition})"])


# --- message passing (8.8, 8.9.4, 8.10.6) -----------------------------------------------------------------------------

#: How the flag is written: (instructions, makes a release pattern, is a fence.sc).
WRITERS = {
    "release": ("st.release.{} f, 1", True, False),
    "fence": ("fence.acq_rel.{0}; st.relaxed.{0} f, 1", True, False),
    "fence.sc": ("fence.sc.{0}; st.relaxed.{0} f, 1", True, True),
    "fence.sc, weak": ("fence.sc.{0}; st.weak f, 1", False, True),
    "relaxed": ("st.relaxed.{} f, 1", False, False),
    "weak": ("st.weak f, 1", False, False),
    "exch": ("atom.release.{}.exch r9, f, 1", True, False),
    "red": ("red.release.{}.add f, 1", True, False),
}
READERS = {
    "acquire": ("ld.acquire.{} r0, f", True, False),
    "fence": ("ld.relaxed.{0} r0, f; fence.acq_rel.{0}", True, False),
    "fence.sc": ("ld.relaxed.{0} r0, f; fence.sc.{0}", True, True),
    "fence.sc, weak": ("ld.weak r0, f; fence.sc.{0}", False, True),
    "relaxed": ("ld.relaxed.{} r0, f", False, False),
    "weak": ("ld.weak r0, f", False, False),
    "add": ("atom.acquire.{}.add r0, f, 0", True, False),
}


def message_passing():
    """(text, forbidden): both patterns, or both fence.sc, with scopes that include each other's thread."""
    for (w, (write, releases, first)), (r, (read, acquires, second)), scopes, place in product(
        WRITERS.items(), READERS.items(), SCOPES, PLACES
    ):
        threads = (f"st.weak x, 1; {write.format(scopes[0])}", f"{read.format(scopes[1])}; ld.weak r1, x")
        forbidden = mutual(scopes, place) and ((releases and acquires) or (first and second))
        name = f"MP {w} {scopes[0]} | {r} {scopes[1]} | {place}"
        yield text(name, place, threads, "P1:r0 == 1 /\\ P1:r1 == 0"), forbidden


# --- store buffering (8.9.3) ------------------------------------------------------------------------------------------

FENCES = {"none": "add r7, r7, 1", "acq_rel": "fence.acq_rel.{}", "sc": "fence.sc.{}"}


def store_buffering():
    """Forbidden by fence.sc in both threads, with scopes that include the other."""
    for first, second, scopes, place in product(FENCES, FENCES, SCOPES, PLACES):
        threads = (f"st.relaxed.sys x, 1; {FENCES[first].format(scopes[0])}; ld.relaxed.sys r0, y",
                   f"st.relaxed.sys y, 1; {FENCES[second].format(scopes[1])}; ld.relaxed.sys r0, x")  # fmt: skip
        name = f"SB {first} {scopes[0]} | {second} {scopes[1]} | {place}"
        forbidden = first == second == "sc" and mutual(scopes, place)
        yield text(name, place, threads, "P0:r0 == 0 /\\ P1:r0 == 0"), forbidden


# --- load buffering (8.10.4) ------------------------------------------------------------------------------------------

#: How the write after the read depends on it.
DEPENDENCIES = {
    "none": ("ld.relaxed.sys r0, {0}; st.relaxed.sys {1}, 1", False),
    "data": ("ld.relaxed.sys r0, {0}; xor r1, r0, r0; add r1, r1, 1; st.relaxed.sys {1}, r1", True),
    "control": ("ld.relaxed.sys r0, {0}; bne r0, 1, L; st.relaxed.sys {1}, 1; L:", True),
    "guard": ("ld.relaxed.sys r0, {0}; setp.eq.u32 p1, r0, 1; @p1 st.relaxed.sys {1}, 1", True),
    "read": ("ld.relaxed.sys r0, {0}; ld.relaxed.sys r1, f; st.relaxed.sys {1}, 1", False),
}


def load_buffering():
    """Forbidden by a dependency in both threads."""
    for (a, (first, one)), (b, (second, two)), place in product(DEPENDENCIES.items(), DEPENDENCIES.items(), PLACES):
        threads = (first.format("x", "y"), second.format("y", "x"))
        yield text(f"LB {a} | {b} | {place}", place, threads, "P0:r0 == 1 /\\ P1:r0 == 1"), one and two


# --- coherence (8.10.5) -----------------------------------------------------------------------------------------------


def coherence():
    """Reads of new, then old: forbidden if the write is observed, that is, morally strong with the first read."""
    for write, first, second, scopes, place in product(
        ("weak", "relaxed"), ("weak", "relaxed"), ("weak", "relaxed", "acquire"), SCOPES, PLACES
    ):
        orders = [order if order == "weak" else f"{order}.{scope}" for order, scope in
                  ((write, scopes[0]), (first, scopes[1]), (second, scopes[1]))]  # fmt: skip
        threads = (f"st.{orders[0]} x, 1", f"ld.{orders[1]} r0, x; ld.{orders[2]} r1, x")
        forbidden = write == first == "relaxed" and mutual(scopes, place)
        yield text(f"CoRR {' '.join(orders)} | {place}", place, threads, "P1:r0 == 1 /\\ P1:r1 == 0"), forbidden


# --- atomic operations (8.10.3) ---------------------------------------------------------------------------------------

OPERATIONS = {
    "add": "add {}, {}, 1",
    "exch": "exch {}, {}, 5",
    "cas": "cas {}, {}, 0, 5",
    "or": "or {}, {}, 4",
    "max": "max {}, {}, 3",
    "inc": "inc {}, {}, 9",
}


def atomicity():
    """Both read the initial value: forbidden if the operations are morally strong."""
    for (a, first), (b, second), order, scopes, place in product(
        OPERATIONS.items(), OPERATIONS.items(), ("relaxed", "acq_rel"), SCOPES, PLACES
    ):
        if a > b:
            continue
        threads = [f"atom.{order}.{scope}." + how.format("r0", "x")
                   for how, scope in ((first, scopes[0]), (second, scopes[1]))]  # fmt: skip
        name = f"atomic {order} {a} {scopes[0]} | {b} {scopes[1]} | {place}"
        yield text(name, place, threads, "P0:r0 == 0 /\\ P1:r0 == 0"), mutual(scopes, place)


FAMILIES = (message_passing, store_buffering, load_buffering, coherence, atomicity)
