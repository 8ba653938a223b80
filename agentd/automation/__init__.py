"""What happens without being asked: heartbeats, jobs, alerts, and the one scheduler that wakes
them.
"""
