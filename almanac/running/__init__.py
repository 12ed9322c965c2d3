"""``almanac run``: start a launcher so that each rank runs where it is placed.

Input: the words of a launcher's command, the environment of the job, the registry.
Output: the words and the environment with which this process becomes the launcher.
"""
