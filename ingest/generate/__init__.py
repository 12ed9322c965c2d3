"""Fabrics and applications made by formula; one file per family, listed in `ingest.generate.catalog`.

Input: a generator's name and parameters.
Output: a `Fabric`, a `Profile` or vertex weights.
"""
