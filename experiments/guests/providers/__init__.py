"""Model providers by name, such as `groq:NAME`, and other protocols through LangChain's clients.

Adds the prefixes of `providers.toml`, and `langchain:PROVIDER:NAME`.
"""
