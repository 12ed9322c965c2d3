"""Several sources of one fabric made one: who is who, which cables both tell, what they disagree on."""
