"""What outlives a command: journal, trials, artifacts. The only room that speaks SQL."""
