"""Compare the fast computations with slow and simple ones, on the user's machine and fabric.

Input: a fabric.
Output: for each check how many values were compared, and which differ.
"""
