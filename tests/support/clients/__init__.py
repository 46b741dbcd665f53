"""Clients that speak with tools as editors do."""
