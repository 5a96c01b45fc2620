"""Every kind of pipeline that settings may name."""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.pipelines.annotated import ChatCompletions
from agents.pipelines.code import Python
from agents.pipelines.command import Command
from agents.pipelines.frameworks import Haystack, LangChain, LlamaIndex
from agents.pipelines.http import Http
from agents.pipelines.predictions import Predictions

Pipeline = Annotated[Http | ChatCompletions | LangChain | Haystack | LlamaIndex | Python | Command | Predictions,
                     Field(discriminator="kind")]
