"""The command line, the settings, and the wiring of all parts.

Input: arguments, environment and configuration file.
Output: tables or JSON on standard output; messages on standard error; an exit code.
"""
