"""Texture fetches in machine code: texels, filters and address modes, lane by lane."""
