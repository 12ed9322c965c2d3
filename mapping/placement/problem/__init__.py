"""The input of a search.

Input: a fabric, a profile, an allocation, pins and an objective.
Output: a `Problem` with the arrays that strategies and refiners use.
"""
