"""Tables that pages show. Pure functions.

Input: fabrics, records and columns.
Output: small pandas tables.
"""
