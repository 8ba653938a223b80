"""Tools of others: programs and services that speak the Model Context Protocol."""
