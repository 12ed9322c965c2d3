"""Names that moved; this module goes."""

from almanac.output.printing import whole as whole
