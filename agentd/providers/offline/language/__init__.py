"""What the offline provider knows of English and German: tables and rules, and nothing but those."""
