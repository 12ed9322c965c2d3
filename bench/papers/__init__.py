"""Do we reproduce the papers? One package per field: process mapping, circuits of optical switches.

Input: values printed in the papers, with the sentence that states each.
Output: records, pages and plots under bench/results.
"""
