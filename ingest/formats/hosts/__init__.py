"""Formats that describe the inside of a host.

Input: hwloc XML.
Output: host layouts: cores, NUMA domains and network adapters.
"""
