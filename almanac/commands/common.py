"""Names that moved; this module goes."""

from almanac.options.common import (
    MOST_SEED as MOST_SEED,
)
from almanac.options.common import (
    F as F,
)
from almanac.options.common import (
    Moment as Moment,
)
from almanac.options.common import (
    json_option as json_option,
)
from almanac.options.common import (
    must_know as must_know,
)
from almanac.options.common import (
    open_registry as open_registry,
)
from almanac.options.common import (
    option_names as option_names,
)
from almanac.options.common import (
    read_hosts as read_hosts,
)
from almanac.options.common import (
    seed_option as seed_option,
)
