"""What keeps a pipeline from running, said so that its owner can do something about it."""


class PipelineError(Exception):
    """The message is for the person who wrote the file, and stands in one line unless it lists several things."""
