"""What is found in ranks and hosts before they are placed: parts, branches and digits.

Input: a profile or a problem.
Output: the group of each rank, of exact sizes; the core of each rank; branches of hosts; orders of digits.
"""
