"""9.7.19 Miscellaneous instructions."""

PAGES = """
# 9.7.19.1 brkpt
    brkpt;
    needs => sm_11

# 9.7.19.2 nanosleep
    nanosleep.u32  t:u32;
    needs => ptx 6.3, sm_70

# 9.7.19.3 pmevent
    pmevent        a:u32(imm 0..15);
    pmevent.mask   a:u32(imm 0..65535);
    needs       => ptx 1.4
    needs .mask => ptx 3.0, sm_20

# 9.7.19.4 trap
    trap;

# 9.7.19.5 setmaxnreg
    setmaxnreg.action.sync.aligned.u32  count(imm 24..256:8);
    .action = { .inc, .dec };
    first .action
    needs => ptx 8.0, sm_90a, blackwell
"""
