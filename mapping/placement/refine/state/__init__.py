"""State that a refiner keeps of a placement while it changes it.

Input: a problem and a placement.
Output: loads of links, updated by each exchange.
"""
