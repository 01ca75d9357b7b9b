"""What a chip computes, recorded: kernels for every scalar form, runners, the file format, and the replay."""
