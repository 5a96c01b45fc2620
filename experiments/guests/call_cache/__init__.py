"""The cache of calls: replies of models that all runs share."""
