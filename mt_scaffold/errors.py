"""The errors that a user can mend, each shown as one line on stderr."""


class MTScaffoldError(Exception):
    """Something in the data or the surroundings is wrong: says what, where and what to do (exit status 1)."""

    exit_status = 1


class UsageError(MTScaffoldError):
    """An option or a configuration value is wrong (exit status 2)."""

    exit_status = 2
