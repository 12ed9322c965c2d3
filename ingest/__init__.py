"""Reading what fabric tools, schedulers and MPI libraries print.

Input: files, archives and standard input.
Output: parsed dataclasses, merged and saved through `registry`.
"""
