"""Fabrics as files of other tools: one file a format, see `registry.exports.catalog`."""
