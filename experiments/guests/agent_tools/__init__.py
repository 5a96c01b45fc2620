"""Tools that agents call: search, list, grep, open, sql, calculate, functions of users, and MCP servers."""
