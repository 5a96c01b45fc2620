"""The setting `metrics`: score answers with functions of users."""
