"""Asynchronous copies and what tells of their end: mbarriers, bulk copies and groups, tensor copies (9.7.9.25)."""
