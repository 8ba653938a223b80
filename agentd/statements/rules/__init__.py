"""What first-person sentences look like, and what each says: tables of patterns by subject."""
