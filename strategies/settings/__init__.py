"""Parse strategies in settings, with their parameters, plug-ins and files of worked examples."""
