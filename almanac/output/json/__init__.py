"""JSON documents of the commands; their keys are listed in docs/reference/json.md.

Input: results of the library, which knows no JSON keys.
Output: dictionaries and lists for `almanac.output.printing.print_json`.
"""
