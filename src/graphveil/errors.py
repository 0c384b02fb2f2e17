"""Everything graphveil raises on purpose, as one tree.

GraphveilError
├── InputError (also ValueError)   a value, option or setting that cannot be used
│   ├── DataError                  a file or graph whose content cannot be used
│   ├── MissingDataError           a data set that is not there and cannot be had
│   ├── NoiseError                 noise that cannot be had: none is enough, or none of that size can be drawn
│   ├── ModelFileError             a saved model that is damaged or not ours
│   └── UsedPathError              a file or folder to be written that is there already, or is being written
├── WriteError (also OSError)      what a disk refuses: it is full, read-only, or not allowed
├── BudgetError                    a spend the declared privacy budget cannot pay for
└── MissingExtraError              an optional package that is not installed

Commands end with exit code 2 on each of them and print the message on one line.
"""

from __future__ import annotations


class GraphveilError(Exception):
    """A refusal: says what was refused, where, what is allowed, and what to do instead.

    Args:
        what: the thing refused, with the value found.
        where: the file, row, option or step it was found in.
        allowed: the values that would have been accepted.
        remedy: the smallest change that would pass.
    """

    def __init__(
        self, what: str, *, where: str | None = None, allowed: str | None = None, remedy: str | None = None
    ) -> None:
        self.what, self.where, self.allowed, self.remedy = what, where, allowed, remedy
        message = f"{where}: {what}" if where else what
        if allowed:
            message += f"; allowed: {allowed}"
        if remedy:
            message += f"; {remedy}"
        # One line whatever was found: values come from files, and may bring line breaks of their own.
        super().__init__(" ".join(message.split()))


class InputError(GraphveilError, ValueError):
    """A value, option or setting that cannot be used."""


class DataError(InputError):
    """A file or graph whose content cannot be used."""


class MissingDataError(InputError):
    """A data set that is not there and cannot be had."""


class NoiseError(InputError):
    """Noise that cannot be had for what was set: none is enough, or none of that size can be drawn."""


class ModelFileError(InputError):
    """A saved model that is damaged or was not written by graphveil."""


class UsedPathError(InputError):
    """A file or folder to be written that is there already, or that another process is about to write."""


class WriteError(GraphveilError, OSError):
    """A file or folder that the disk refuses: it is full, read-only, not allowed, or has no such names."""


class BudgetError(GraphveilError):
    """A spend the declared privacy budget cannot pay for; nothing was read or spent."""


class MissingExtraError(GraphveilError):
    """An optional package that is not installed."""
