"""Names that moved; this module goes."""

from almanac.options.running_jobs import (
    CONVENTION as CONVENTION,
)
from almanac.options.running_jobs import (
    NAMED as NAMED,
)
from almanac.options.running_jobs import (
    F as F,
)
from almanac.options.running_jobs import (
    fabric_told as fabric_told,
)
from almanac.options.running_jobs import (
    header as header,
)
from almanac.options.running_jobs import (
    heading_told as heading_told,
)
from almanac.options.running_jobs import (
    left_out_told as left_out_told,
)
from almanac.options.running_jobs import (
    link_told as link_told,
)
from almanac.options.running_jobs import (
    read_live as read_live,
)
from almanac.options.running_jobs import (
    routed as routed,
)
from almanac.options.running_jobs import (
    tell_left_out as tell_left_out,
)
from almanac.options.running_jobs import (
    user_told as user_told,
)
from almanac.options.running_jobs import (
    users_text as users_text,
)
