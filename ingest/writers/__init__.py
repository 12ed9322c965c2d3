"""Generated fabrics and profiles as files.

Input: a generated fabric or profile, and the name of a format.
Output: files that the parser of that format reads back.
"""
