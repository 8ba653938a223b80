"""Texts cut into the pieces that search finds, one way of cutting a module. Pure."""
