"""Printing: tables, JSON documents, CSV, notes and progress bars.

Input: results of the library.
Output: text on standard output, on standard error or in files.
"""
