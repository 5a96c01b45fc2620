"""Every kind of pipeline that settings may name."""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.pipelines.code import Python
from agents.pipelines.command import Command
from agents.pipelines.http import Http
from agents.pipelines.predictions import Predictions

Pipeline = Annotated[Http | Python | Command | Predictions, Field(discriminator="kind")]
