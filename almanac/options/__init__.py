"""Options that several commands share, and the readers of their values.

Input: text of the command line.
Output: dataclasses, dates, names and file contents.
"""
