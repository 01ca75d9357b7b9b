"""Textures and surfaces (5.3, 9.7.10, 9.7.11): their objects, sampling, and instructions."""
