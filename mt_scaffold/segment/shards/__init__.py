"""Documents → a folder with a pair of files of ids per input, which processes on several machines can share."""
