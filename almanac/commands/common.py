"""Names that moved; this module goes."""

from almanac.options.common import Time as Moment
from almanac.options.common import json_option as json_option
from almanac.options.common import open_registry as open_registry
from almanac.options.common import option_names as option_names
from almanac.options.common import read_hosts as read_hosts
from almanac.options.common import require_cluster as must_know
from almanac.options.common import seed_option as seed_option

__all__ = ["Moment", "json_option", "must_know", "open_registry", "option_names", "read_hosts", "seed_option"]
