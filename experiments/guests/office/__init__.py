"""Word, PowerPoint and Excel files (extra `office`)."""
