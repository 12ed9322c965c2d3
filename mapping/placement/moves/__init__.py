"""Improving a present placement by moving few ranks.

Input: a problem and the present placement.
Output: a placement for each number of moved ranks; advice whether moving pays.
"""
