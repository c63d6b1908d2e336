"""The commands of experiments that do more than call one function of a stage."""
