"""Charts and maps. Pure functions, one for each figure.

Input: tables and arrays.
Output: charts, and pictures for the fabric map.

Text from the database is always data of a chart, never an expression.
"""
