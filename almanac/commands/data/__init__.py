"""Commands that load, generate and list data: fabrics, profiles, jobs.

Input: files of other tools, or parameters of a generator.
Output: data in the registry, files, tables or JSON.
"""
