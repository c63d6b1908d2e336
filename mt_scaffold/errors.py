"""The errors that a user can fix, each shown as one line on stderr."""

# Printed, these could move the cursor or set a terminal's title: names in messages can come from anywhere.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
# What the core quotes can also hold tabs and line ends: the CR of a Windows line would hide what precedes it.
_IN_ONE_LINE = {code: f"\\x{code:02X}" for code in _CONTROLS} | {
    ord(each): ascii(each)[1:-1] for each in "\t\n\r\u2028\u2029"
}
# The most characters of a file in a message.
_LONGEST = 500


def printable(text: str) -> str:
    """Return a text from a file as messages quote it: in one line, escaped, and cut off if it is long."""
    spelled = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:_LONGEST])
    return spelled + "..." * (len(text) > _LONGEST)


def in_one_line(message: str) -> str:
    """Return a message of the core with escapes for control characters and line separators."""
    return message.translate(_IN_ONE_LINE)


class MTScaffoldError(Exception):
    """Something in the data or the environment is wrong; the message says where, what, and how to fix it (status 1)."""

    exit_status = 1

    def __str__(self) -> str:
        """Return the message, with escapes for control characters other than tabs and line ends."""
        return super().__str__().translate(_CONTROLS)


class UsageError(MTScaffoldError):
    """An option or a configuration value is wrong (exit status 2)."""

    exit_status = 2


class WrongTypeError(UsageError, TypeError):
    """An argument is of the wrong type."""


class SpecialTokenError(MTScaffoldError, ValueError):
    """A text holds a special token that the call does not allow there; a ValueError, as in tiktoken."""
