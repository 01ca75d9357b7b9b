"""Argument specs, launch files, expectations: from what a user writes to launches on a device."""
