"""Opening, decompressing and decoding files within limits: all defences against bad input.

Input: paths, streams and archives.
Output: text, JSON or YAML of limited size; `InputError` otherwise.
"""
