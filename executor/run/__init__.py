"""One run of an approved plan, from preflight checks to rollback."""
