"""Names that moved; this module goes."""

from almanac.options.running_jobs import read_live as read_live
from almanac.output.json.running_jobs import fabric_to_json as fabric_told
from almanac.output.json.running_jobs import heading_to_json as heading_told
from almanac.output.json.running_jobs import omitted_jobs_to_json as left_out_told
from almanac.output.running_jobs import CONVENTION as CONVENTION
from almanac.output.running_jobs import heading as header
from almanac.output.running_jobs import note_omitted_jobs as tell_left_out

__all__ = [
    "CONVENTION",
    "fabric_told",
    "header",
    "heading_told",
    "left_out_told",
    "read_live",
    "tell_left_out",
]
