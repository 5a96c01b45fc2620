"""`ragbed show-prompt`: what a model would be sent, before anything is sent."""
