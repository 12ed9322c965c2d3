"""Fabrics in the file formats of other tools; listed in `registry.exports.catalog`.

Input: a `Fabric` and the name of a format.
Output: the text of a file.
"""
