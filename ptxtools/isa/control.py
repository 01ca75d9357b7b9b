"""9.7.12 Control flow."""

PAGES = """
# 9.7.12.3 bra
    bra{.uni}  tgt(label);

# 9.7.12.4 brx.idx
    brx.idx{.uni}  index:u32, tlist(label);
    needs => ptx 6.0, sm_30

# 9.7.12.5 call
    call{.uni}  (ret), callee(func), (params){, flist(prototype)};
    call{.uni}  callee(func), (params){, flist(prototype)};
    call{.uni}  callee(func){, flist(prototype)};
    needs @flist => ptx 2.1, sm_20

# 9.7.12.6 ret
    ret{.uni};

# 9.7.12.7 exit
    exit;
"""
