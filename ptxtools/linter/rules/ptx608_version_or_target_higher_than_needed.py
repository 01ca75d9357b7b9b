"""PTX608 | .version or .target higher than needed | 11.1.1

What: .version is later than anything in the module requires for its target, or .target is none of the lowest ones that
have everything the module uses. Only reported if `--select` or the setting `select` names this code in full, such as
`--select all,PTX608`: nearly every compiler declares its own version, and the chip that code is tuned for.
Why: older drivers, and older chips, refuse a module that they could run.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() { bar.warp.sync -1; ret; }
Better:
    .version 6.0
    .target sm_30
    .address_size 64
    .entry k() { bar.warp.sync -1; ret; }
"""

from __future__ import annotations

from ptxtools.check import gather
from ptxtools.check.availability import able_targets, demands_of, lowest_targets
from ptxtools.diagnostics.text import join_words
from ptxtools.ir.nodes import Header
from ptxtools.isa.targets import VERSIONS, version_text

from ..context import LintContext
from ..headers import edited_headers
from ..registry import on_request

CODE = "PTX608"


@on_request
def check(context: LintContext) -> None:
    module = context.module
    headers = {item.name: item for item in module.items if isinstance(item, Header)}
    if ".version" not in headers or ".target" not in headers or module.version not in VERSIONS:
        return
    gathered = gather(module)
    needs = demands_of(need for item in gathered for need in item.needs)
    able = able_targets(needs, demands_of(need for item in gathered for need in item.gone))
    lowest = able.get(module.target or "")
    if lowest is None or lowest > module.version:
        return
    both = headers[".version"], headers[".target"]
    if lowest < module.version:
        message = f"PTX {version_text(lowest)} is enough for this module and {module.target}"
        fix = edited_headers(module, *both, module.target or "", lowest, "lower")
        context.warn(CODE, message, headers[".version"].span, section="11.1.1", fix=fix)
    targets = lowest_targets(able)
    if module.target not in targets:
        message = f"this module uses nothing that {join_words(list(targets), 'or')} does not have"
        fix = None
        if len(targets) == 1 and able[targets[0]] <= module.version:
            fix = edited_headers(module, *both, targets[0], module.version, "lower")
        context.warn(CODE, message, headers[".target"].span, section="11.1.2", fix=fix)
