"""Modules that call every intrinsic of NVVM IR: a kernel for each family, which stores what each call returns.

Parameters of a kernel: where results go, SLOT bytes for each call in order: 32 bytes for each lane of the one warp, and
from EXTRA on memory that calls work on; `DATA` words of input; handles of textures and surfaces (`HANDLES`).
"""

from itertools import product
from typing import NamedTuple

SLOT, EXTRA, DATA, SHARED = 2048, 1024, 2048, 2048
#: Calls of a kernel: more are spread over several.
MOST = 96
GEOMETRIES = ("1d", "1d.array", "2d", "2d.array", "3d", "cube", "cube.array")
TEXELS = ("f32", "s32", "u32")
#: What the handles are of, in order: a texture of each geometry and type of texels, a surface to load from and one to
#: store into of each geometry but cubes.
HANDLES = (
    *(("texture", geometry, texel) for geometry in GEOMETRIES for texel in TEXELS),
    *(("load", geometry, "") for geometry in GEOMETRIES[:5]),
    *(("store", geometry, "") for geometry in GEOMETRIES[:5]),
)
LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)
HEAD = f"""target datalayout = "{LAYOUT}"
target triple = "nvptx64-nvidia-cuda"
@shared = internal addrspace(3) global [{SHARED} x i32] undef, align 128
@tex = addrspace(1) global i64 0, align 8
"""
WIDTHS = {"i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


class Call(NamedTuple):
    """A call of an intrinsic with these constant operands."""

    form: object
    constants: tuple

    def __str__(self):
        return ",".join([self.form.name.removeprefix("llvm.nvvm."), *map(str, self.constants)])


def calls_of(forms):
    """A call for each form and each choice of its constant operands."""
    return [Call(form, values) for form in forms for values in product(*form.constants.values())]


def kernels_of(calls):
    """The calls of each kernel, by its name."""
    families = {}
    for call in calls:
        families.setdefault(call.form.name.split(".")[2], []).append(call)
    found = {}
    for name, family in families.items():
        for n in range(0, len(family), MOST):
            found[f"{name}_{n // MOST}"] = family[n : n + MOST]
    return found


def module(kernels, modern=False, skip=()):
    """The text of a module with these kernels (`kernels_of`). skip: names that are not called."""
    text, declared = [HEAD], {}
    for name, calls in kernels.items():
        writer = _Writer(modern)
        for number, call in enumerate(calls):
            if call.form.name not in skip:
                writer.call(call, number)
                declared[call.form.name] = call.form
        signature = ", ".join(f"{writer.pointer('i8', 1)} {p}" for p in ("%out", "%data", "%handles"))
        text += [f"define void @{name}({signature}) {{", *writer.begin(), *writer.lines, "  ret void", "}"]
    for form in declared.values():
        types = ", ".join(_Writer(modern).spelled(type_) for type_ in form.parameters)
        text.append(f"declare {form.result} @{form.modern_name if modern else form.name}({types})")
    text.append("declare i32 @llvm.nvvm.read.ptx.sreg.laneid()")
    kind = "ptr" if modern else "void (i8 addrspace(1)*, i8 addrspace(1)*, i8 addrspace(1)*)*"
    notes = [f'!{{{kind} @{name}, !"kernel", i32 1}}' for name in kernels]
    notes.append(f'!{{{_Writer(modern).spelled("i64 addrspace(1)*")} @tex, !"texture", i32 1}}')
    text.append(f"!nvvm.annotations = !{{{', '.join(f'!{n}' for n in range(len(notes)))}}}")
    text += [f"!{n} = {note}" for n, note in enumerate(notes)]
    text += [f"!nvvmir.version = !{{!{len(notes)}}}", f"!{len(notes)} = !{{i32 2, i32 0}}"]
    return "\n".join(text) + "\n"


class _Writer:
    """The body of one kernel."""

    def __init__(self, modern):
        self.modern, self.lines, self.count = modern, [], 0
        self.stored = dict.fromkeys(GEOMETRIES, 0)

    def pointer(self, type_, space=0):
        where = f" addrspace({space})" if space else ""
        return f"ptr{where}" if self.modern else f"{type_}{where}*"

    def spelled(self, type_):
        if not type_.endswith("*"):
            return type_
        inner, _, space = type_[:-1].partition(" ")
        return self.pointer(inner, int(space[10:-1] or 0) if space else 0)

    def set(self, value):
        """A new name for a value."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {value}")
        return f"%v{self.count}"

    def place(self, base, offset, type_, space=1):
        """A pointer to a type, at bytes from a pointer to i8."""
        at = self.set(f"getelementptr i8, {self.pointer('i8', space)} {base}, i64 {offset}")
        return at if self.modern else self.set(f"bitcast i8 addrspace({space})* {at} to {self.pointer(type_, space)}")

    def load(self, type_, base, offset, space=1):
        at = self.place(base, offset, type_, space)
        return self.set(f"load {type_}, {self.pointer(type_, space)} {at}, align {WIDTHS[type_]}")

    def store(self, type_, value, base, offset):
        at = self.place(base, offset, type_)
        self.lines.append(f"  store {type_} {value}, {self.pointer(type_, 1)} {at}, align {WIDTHS[type_]}")

    def begin(self):
        """What all calls use: the lane and numbers made of it, and shared memory with the first words of the data."""
        words = self.pointer(f"[{SHARED} x i32]", 3)
        out, word = self.pointer("i8", 1), self.pointer("i32", 1)
        head = _Writer(self.modern)
        base = head.place("%data", "%at", "i32")
        mine = f"getelementptr [{SHARED} x i32], {words} @shared, i32 0, i32 %step"
        shared = f"getelementptr [{SHARED} x i32], {words} @shared, i32 0, i32 0"
        shared_bytes = "bitcast i32 addrspace(3)* %first to i8 addrspace(3)*"
        if self.modern:
            shared_bytes = "getelementptr i8, ptr addrspace(3) %first, i32 0"
        return [
            "start:",
            "  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()",
            "  br label %copy",
            "copy:",
            "  %step = phi i32 [ %lane, %start ], [ %next, %copy ]",
            "  %bytes = shl i32 %step, 2",
            "  %at = zext i32 %bytes to i64",
            *(line.replace("%v", "%c") for line in head.lines),
            f"  %word = load i32, {word} {base.replace('%v', '%c')}, align 4",
            f"  %to = {mine}",
            f"  store i32 %word, {self.pointer('i32', 3)} %to, align 4",
            "  %next = add i32 %step, 32",
            f"  %more = icmp ult i32 %next, {SHARED}",
            "  br i1 %more, label %copy, label %work",
            "work:",
            f"  %first = {shared}",
            f"  %shared = {shared_bytes}",
            "  %wide = zext i32 %lane to i64",
            *(f"  %times{n} = mul i64 %wide, {n}" for n in (4, 8, 16, 32, 64)),
            f"  %mine = getelementptr i8, {out} %out, i64 %times32",
            f"  %input = getelementptr i8, {out} %data, i64 %times64",
            "  %real = uitofp i32 %lane to float",
            "  %x = and i32 %lane, 7",
            "  %y = lshr i32 %lane, 3",
            "  %z = and i32 %lane, 3",
            "  %layer = and i32 %lane, 1",
            "  %odd = icmp eq i32 %layer, 1",
            *(f"  %f{n} = fmul float %real, {value}" for n, value in enumerate(("0.25", "0.125", "0.0625"))),
            *(f"  %f{n} = fadd float %f{n - 3}, 0.5" for n in (3, 4, 5)),
        ]

    # --- calls --------------------------------------------------------------------------------------------------------

    def call(self, call, number):
        form, parts = call.form, call.form.name.split(".")[2:]
        constants = dict(zip(form.constants, call.constants, strict=True))
        given = self.operands(form, parts, constants, number)
        operands = []
        for n, type_ in enumerate(form.parameters):
            operands.append(f"{self.spelled(type_)} {constants[n] if n in constants else given[n]}")
        name = form.modern_name if self.modern else form.name
        text = f"call {form.result} @{name}({', '.join(operands)})"
        if form.result == "void":
            self.lines.append(f"  {text}")
        else:
            self.results(form.result, self.set(text), number * SLOT, parts)
        if parts[:1] == ["hmma"] and parts[2] == "st" and ".p3" in form.name:
            for n in range(8 if "f32" in form.name else 4):
                at = self.set(f"add i64 %times32, {4 * n}")
                self.store("i32", self.load("i32", "%shared", at, 3), "%mine", number * SLOT + 4 * n)

    def results(self, type_, value, offset, parts):
        types = type_.strip("{}").split(", ")
        for n, element in enumerate(types):
            one = self.set(f"extractvalue {type_} {value}, {n}") if type_[0] == "{" else value
            if element == "i1":
                element, one = "i32", self.set(f"zext i1 {one} to i32")
            if parts[0] == "suld" and {"i8", "v2i8", "v4i8"} & set(parts):  # the upper half is undefined
                one = self.set(f"and i16 {one}, 255")
            self.store(element, one, "%mine", offset)
            offset += WIDTHS[element]

    def operands(self, form, parts, constants, number):
        kind = parts[0]
        if kind in ("tex", "tld4"):
            return self.texture(form, parts)
        if kind in ("suld", "sust"):
            return self.surface(form, parts)
        if kind == "hmma":
            return self.matrix(form, parts, constants, number)
        if kind == "atomic":
            type_ = {"f32": "float", "f64": "double"}.get(parts[3], "i32")
            at = self.set(f"add i64 %times8, {number * SLOT + EXTRA}")
            value = {"i32": "%x", "float": "%f3"}.get(type_) or self.set("fpext float %f3 to double")
            return [self.anywhere(type_, form.parameters[0], "%out", at), value]
        if kind == "isspacep":
            here = self.set(f"addrspacecast {self.pointer('i8', 1)} %out to {self.pointer('i8')}")
            there = self.set(f"addrspacecast {self.pointer('i8', 3)} %shared to {self.pointer('i8')}")
            return [self.set(f"select i1 %odd, {self.pointer('i8')} {here}, {self.pointer('i8')} {there}")]
        if kind == "texsurf":
            return [f"{self.pointer('i64', 1)} @tex", "@tex"]
        values = {"shfl": ["-1", "", "%lane", "%z", "31"], "vote": ["-1", "", "%odd"], "bar": ["-1"]}
        if kind == "match":
            return ["-1", "%z" if form.parameters[1] == "i32" else self.set("zext i32 %layer to i64")]
        return values.get(kind, ["%z"] * len(form.parameters))

    def anywhere(self, type_, parameter, base, at):
        """A pointer for a parameter, at bytes of global memory, or of shared memory from the same lane's place."""
        if "(3)" in parameter:
            return self.place("%shared", "%times8", type_, 3)
        one = self.place(base, at, type_)
        if "(1)" in parameter:
            return one
        return self.set(f"addrspacecast {self.pointer(type_, 1)} {one} to {self.pointer(type_)}")

    def handle(self, *which):
        return self.load("i64", "%handles", 8 * HANDLES.index(which))

    def texture(self, form, parts):
        geometry = "2d" if parts[0] == "tld4" else ".".join(p for p in parts[2:4] if p in (*GEOMETRIES, "array"))
        texel = next(p[2:] for p in parts if p.startswith("v4"))
        found, coordinates, reals = [self.handle("texture", geometry, texel)], iter("xyz"), iter(range(6))
        for n, type_ in enumerate(form.parameters[1:], 1):
            if type_ == "i32":
                found.append("%layer" if n == 1 and "array" in parts else f"%{next(coordinates)}")
            else:
                found.append(f"%f{next(reals, 2)}")
        if "level" in parts:
            found[-1] = "0.0"
        return found

    def surface(self, form, parts):
        loads = parts[0] == "suld"
        geometry = ".".join(p for p in parts if p in (*GEOMETRIES, "array"))
        found = [self.handle("load" if loads else "store", geometry, "")]
        if loads:
            x = self.set("mul i32 %lane, 16")
            if parts[-1] != "trap":
                x = self.set(f"sub i32 {x}, 64")
        elif parts[1] == "p":
            x = self.set(f"add i32 %lane, {128 * self.stored[geometry]}")
        else:
            x = self.set("mul i32 %lane, 16")
            x = self.set(f"add i32 {x}, {512 * self.stored[geometry]}")
        self.stored[geometry] += 1
        rest = ["%layer"] if "array" in parts else []
        rest += [x, "%layer", "%layer"][: int(geometry[0])]
        found += rest
        values = form.parameters[len(found) :]
        for n, type_ in enumerate(values):
            word = self.set(f"mul i32 %lane, {n + 3}")
            found.append(
                word if type_ == "i32" else self.set(f"{'trunc' if type_ == 'i16' else 'zext'} i32 {word} to {type_}")
            )
        return found

    def matrix(self, form, parts, constants, number):
        m, n = (int(v) for v in parts[1].removeprefix("m").removesuffix("k16").split("n"))
        if parts[2] == "mma":
            found = ["", ""]
        elif parts[2] == "ld":
            base = self.anywhere("float" if "f32" in form.name else "i32", form.parameters[0], "%data", "0")
            if "(3)" in form.parameters[0]:
                base = self.place("%shared", 0, "float" if "f32" in form.name else "i32", 3)
            return [base, "32", ""]
        else:
            type_ = "float" if "f32" in form.name else "i32"
            base = self.anywhere(type_, form.parameters[0], "%out", number * SLOT + EXTRA)
            if "(3)" in form.parameters[0]:
                base = self.place("%shared", 0, type_, 3)
            found = [base, str(m if constants[2] else n), ""]
        for k, type_ in enumerate(form.parameters[len(found) :]):
            found.append(self.load(type_, "%input", 4 * (k % 16)))
        return found
