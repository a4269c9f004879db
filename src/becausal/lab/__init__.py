"""Runs conditions: workspaces, servers, sandbox, capture. The only room that starts processes."""
