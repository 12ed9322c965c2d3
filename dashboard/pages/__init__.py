"""One module per page: what it reads, its tables, its charts, its drawing."""
