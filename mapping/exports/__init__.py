"""Placements as files that launchers take: one file a format, see `mapping.exports.catalog`."""
