"""Pictures and pages of finished runs; reads records only."""
