"""Many placements of one file: its rows, and the folder of their results.

Input: a CSV file whose columns are options of ``almanac map``.
Output: a request for each row; files with the result of each row, and a script for Slurm.
"""
