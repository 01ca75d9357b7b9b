"""9.7.17 Stack manipulation."""

PAGES = """
# 9.7.17.1 stacksave
    stacksave.type  d;
    .type = { .u32, .u64 };
    needs => ptx 7.3, sm_52

# 9.7.17.2 stackrestore
    stackrestore.type  a(reg);
    .type = { .u32, .u64 };
    needs => ptx 7.3, sm_52

# 9.7.17.3 alloca
    alloca.type  =ptr, size{, immAlign:u32(imm 1..8388608)};
    .type = { .u32, .u64 };
    needs => ptx 7.3, sm_52
"""
