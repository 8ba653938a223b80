"""Conversations with what a careful reader would know at their end, played through a real
daemon.
"""
