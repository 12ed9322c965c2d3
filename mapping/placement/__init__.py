"""The search for placements.

Input: a fabric, a profile, an allocation, an objective and a limit of time or steps.
Output: the best placement found, and how it was found.
"""
