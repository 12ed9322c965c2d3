"""Care of stored data: deleting, renaming and merging, retention, and checks of what is stored.

Input: ids of stored data, names of clusters, rules for what is kept.
Output: a correct registry, and counts of what changed.
"""
