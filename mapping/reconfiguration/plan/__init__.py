"""The next circuits of a switch in use: which circuits to move, and how few.

Input: an application whose vertices stay on their nodes, a machine, and its present circuits.
Output: circuits to remove and to add, the gain, and when the change pays off.
"""
