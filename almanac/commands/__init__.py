"""The subcommands, each with an object `command`; heavy imports stay inside functions.

Input: command-line options.
Output: printed results and an exit code.
"""
