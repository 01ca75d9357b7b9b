"""Asynchronous copies and their completion mechanisms: mbarriers, bulk copies and groups, tensor copies (9.7.9.25)."""
