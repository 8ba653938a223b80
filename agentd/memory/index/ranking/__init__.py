"""How hits are scored and ordered: fusion, decay, diversity, newest first, token budgets. Pure."""
