"""Backup of a whole registry in one file.

Input: an open database, or a backup file.
Output: a backup file, or a database filled from it.
"""
