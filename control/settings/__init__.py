"""Every setting, with its sources in order of precedence."""
