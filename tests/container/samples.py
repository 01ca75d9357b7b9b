"""Modules for the tests of this folder: one with every node, and the test data."""

from pathlib import Path

from ptxtools.container import note
from ptxtools.container.elf import parse_elf
from ptxtools.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
TESTDATA = ROOT / "testdata"
BINARIES = TESTDATA / "binaries"
PTX_FILES = sorted(TESTDATA.glob("bench/ptx/*.ptx")) + sorted(TESTDATA.glob("cases/*/*.ptx"))

EVERYTHING = """\
.version 9.0
.target sm_90, debug, texmode_independent
.address_size 64
.pragma "nounroll";
.file 1 "a.cu"
.file 2 "b.cu", 1700000000, 321
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 values);
.extern .func something (.param .b64 x);
.extern .shared .align 16 .b8 dynamic[];
.extern .global .u32 elsewhere[4];
.const .align 4 .b8 table[64] = {3, 0, 255};
.visible .const .f32 floats[4] = {0f3F800000, 0f40000000};
.global .align 8 .u64 pointers[3] = {table, generic(floats)+8, 12345678901234567890};
.global .u8 low = 0xff(table);
.global .s32 matrix[2][3] = {{1, -2, 3}, {4, 5}};
.global .f64 mixed[2] = {1.5, 0d3FF0000000000000};
.visible .global .v4 .f32 vectors[2];
.weak .global .u32 maybe = 7;
.common .global .u32 pool[16];
.shared .f32 tile[32];
.global .texref texture;
.global .samplerref sampler = { filter_mode = nearest, addr_mode_0 = wrap };
.visible .func (.reg .b32 r) twice (.reg .b32 x)
{
    add.s32 r, x, x;
    ret;
}
.extern .func never () .noreturn;
.visible .func (.reg .b32 r) alsotwice (.reg .b32 x);
.alias alsotwice, twice;
.visible .entry kernel(
    .param .u64 .ptr .global .align 16 kernel_param_0,
    .param .align 8 .b8 kernel_param_1[17],
    .param .f32 kernel_param_2
)
.maxntid 256, 1, 1
.minnctapersm 2
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>, single;
    .reg .v4 .f32 quad;
    .reg .b64 %rd<10>;
    .shared .align 16 .b8 buffer[132];
    .local .align 4 .b8 stack[12];
    .loc 1 11 2
    ld.param.u64 %rd1, [kernel_param_0];
    mov.u32 %r1, %tid.x;
    setp.eq.and.s32 %p1|%p2, %r1, 5, !%p1;
$again:
    @%p1 add.s32 %r2, %r1, -5;
    @!%p2 bra $done;
    {
        .reg .f32 inner;
        mov.f32 inner, 0f3F800000;
    }
    .loc 2 20 4, function_name $name, inlined_at 1 11 2
    ld.global.v4.f32 {%r1, %r2, %r3, %r4}, [%rd1+16];
    ld.global.u32 %r3, [elsewhere+4];
    mov.u64 %rd2, table;
    mov.u64 %rd3, table+4;
    ld.const.u8 %r4, [table+-1];
    tex.2d.v4.f32.f32 {%r1, %r2, %r3, _}, [texture, sampler, {%r5, %r6}];
targets: .branchtargets $again, $done;
    brx.idx %r1, targets;
    {
        .param .b64 p0;
        st.param.b64 [p0], %rd1;
        call.uni something, (p0);
    }
prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (%r1), %rd2, (%r2), prototype;
functions: .calltargets twice;
    call (%r1), %rd2, (%r2), functions;
$done:
    ret;
}
.section .debug_str
{
$name:
.b8 107, 101, 114, 0
.b8 1
.b32 .debug_str+4
.b64 $done
}
"""


def module(text=EVERYTHING, name="test.ptx"):
    """The module of a text, which must have no syntax error."""
    result = parse(text, name)
    assert not result.diagnostics, [d.message for d in result.diagnostics]
    return result.module


def resealed(data):
    """The bytes with their content hash set right again, as someone who forges a container would; else unchanged."""
    try:
        section = parse_elf(data).find(note.SECTION)
        place = section.offset + note.decode_notes(bytes(section.data))[note.NT_SHA256][0]
        return data[:place] + note.digest(data, place) + data[place + 32 :]
    except Exception:  # the damage hit what says where the hash stands
        return data
