"""Backup of a whole registry in one file.

Input: an open database, or a dump file.
Output: a dump file, or an empty database filled from it.
"""
