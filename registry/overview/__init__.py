"""All clusters at a glance.

Input: an open database.
Output: state, age of data and findings of every cluster, in one statement.
"""
