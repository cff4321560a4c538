"""The exit codes of every command. `rocketpy --help` and docs/command-line.md say the same."""

from __future__ import annotations

FOUND = 1
FAILED = 2
UNFORESEEN = 70  # as sysexits.h has it: the program itself is at fault
INTERRUPTED = 130  # as a shell says it of Ctrl-C
CLOSED_PIPE = 141  # as a shell says it of a reader, `head` say, that has seen enough

EXIT_CODES = {
    0: "all is well",
    FOUND: "the work was done, and something is wrong: damage, loss, a fault",
    FAILED: "it could not be done, or was asked for wrongly: stderr says why",
    UNFORESEEN: "what nobody foresaw, a bug perhaps: stderr has the traceback",
    INTERRUPTED: "ended by Ctrl-C",
    CLOSED_PIPE: "the reader of the output has closed it, as `head` does",
}
