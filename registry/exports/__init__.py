"""Fabrics in the file formats of other tools; listed in `registry.exports.catalog`."""
