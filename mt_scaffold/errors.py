"""The errors that a user can fix, each shown as one line on stderr."""


class MTScaffoldError(Exception):
    """Something in the data or the environment is wrong; the message says where, what, and how to fix it (status 1)."""

    exit_status = 1


class UsageError(MTScaffoldError):
    """An option or a configuration value is wrong (exit status 2)."""

    exit_status = 2


class SpecialTokenError(MTScaffoldError, ValueError):
    """A text holds a special token that the call does not allow there; a ValueError, as in tiktoken."""
