"""``almanac serve``: collectors, the spool of waiting ingests, metrics and the JSON API over HTTP."""
