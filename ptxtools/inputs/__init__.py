"""What a file is, told by its content, and the PTX inside NVIDIA's binaries."""
