"""Textures and surfaces (5.3, 9.7.10, 9.7.11): what they are, how they are sampled, and the instructions' part."""
