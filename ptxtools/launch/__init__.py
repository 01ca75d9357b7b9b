"""Argument specs, launch files, expectations: from user input to launches on a device."""
