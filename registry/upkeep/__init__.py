"""Care for what is stored: backups, verification, deletion, and what of it is kept how long."""
