"""What is offered at each kind of place."""

from ptxtools.editor.completion import complete
from ptxtools.editor.document import Document
from tests.rows import rows

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BODY = """.global .b32 g;
.func f() { ret; }
.entry k(.param .u64 p)
{
    .reg .b32 %r<4>;
L1:
    |
    ret;
}
"""


@rows(("text", "has", "lacks"), [
    (HEAD + BODY.replace("|", "mov.b32 %r1, %tid.|"), {"x", "w"}, {"%tid", "%r", "v2"}),
    (HEAD + BODY.replace("|", "mov.b32 %r1, %laneid.|"), set(), {"x", "%tid"}),
    (HEAD + BODY.replace("|", "mov.b32 %r1, v.|"), {"x", "y"}, {"b32", "reg"}),
    (HEAD + BODY.replace("|", ".|"), {"reg", "shared", "pragma", "loc"}, {"visible", "entry", "version", "b32"}),
    (HEAD + BODY.replace("|", ".reg .|"), {"b32", "pred", "v4"}, {"reg", "texref", "entry"}),
    (HEAD + BODY.replace("|", ".shared .al|"), {"align"}, {"b32", "pred"}),
    (HEAD + BODY.replace("|", "// mov.|"), set(), {"b32"}),
    (HEAD + BODY.replace("|", "/* one\n mov.|"), set(), {"b32", "%r"}),
    (HEAD + BODY.replace("|", '.pragma "mov.|'), set(), {"b32", "%r"}),
    (HEAD + BODY.replace("|", "/* one */ mov.|"), {"b32"}, {"%r"}),
    (HEAD + ".vis|", {"visible"}, {"reg"}),
    (HEAD + ".entry k() .m|\n{ ret; }", {"maxntid", "maxnreg"}, {"reg", "noreturn"}),
    (HEAD + ".entry k() .|\n{ ret; }", set(), {"explicitcluster"}),  # of sm_90
    (HEAD.replace("80", "90") + ".entry k() .|\n{ ret; }", {"explicitcluster"}, set()),
    (HEAD + ".func f() .|\n{ ret; }", {"noreturn"}, {"reg"}),
    (HEAD + ".entry k(.param .|", {"u64", "ptr"}, {"pred"}),
    (HEAD + ".global .|", {"b32", "texref"}, {"pred"}),
    (HEAD.replace("80", "") + ".entry k() .|\n{ ret; }", {"maxntid", "explicitcluster"}, {"reg"}),  # sm_ of no number
    (BODY.replace("|", "tcgen05.|"), {"mma", "ld"}, {"reg"}),  # before the module says what it is for
    (".|", {"version", "target"}, {"loc"}),
    (".version |", {"8.0", "9.0", "1.0"}, {"%tid", "sm_80"}),
    (".version 8.|", {"8.0"}, {"%tid"}),
    (".version 8.0\n.target |", {"sm_80", "sm_90a", "debug"}, {"%tid", "sm_100"}),
    (".version 8.0\n.target sm_80, |", {"debug"}, {"%tid"}),
])  # fmt: skip
def test_places(text, has, lacks):
    at = text.index("|")
    found = {item.text for item in complete(Document(text.replace("|", ""), "k.ptx"), at)}
    assert has <= found and not lacks & found, sorted(found)
