"""The workflow of an experiment with language models: its folder, its steps' options, its checks and its summary."""
