"""More strategies from the literature, for reasoning and for retrieval; each is imported when settings name it."""
from importlib import resources

PROMPTS = resources.files(__name__).joinpath("prompts")
