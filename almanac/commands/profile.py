"""Names that moved; this module goes."""

from almanac.commands.data.profile import (
    export as export,
)
from almanac.commands.data.profile import (
    list_profiles as list_profiles,
)
from almanac.commands.data.profile import (
    show as show,
)
from almanac.commands.data.profile import (
    whole as whole,
)
