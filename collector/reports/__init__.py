"""Reports of metrics reporters and exporters, merged into load vectors."""
