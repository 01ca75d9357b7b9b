"""The debugger: an observer that stops a run, looks at it, changes it, and goes back in it.

`debugger` decides when to stop, `timeline` keeps earlier moments, `code` and `expressions` find lines and values,
`looking` makes the tables that a front end shows. Front ends: `commands` (`ptx-run --debug`) and `dap`
(`ptx-run --dap`).
"""
