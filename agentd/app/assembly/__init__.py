"""Every part put together; the one place that names concrete classes."""
