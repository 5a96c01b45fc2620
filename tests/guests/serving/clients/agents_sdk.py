"""Asks a server by openai-agents, whole and streamed, and prints what it makes of the answers. Arguments: the base URL
of the server, its model."""
import asyncio
import json
import sys

from openai import AsyncOpenAI

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled


async def asked(kind, client, model):
    agent = Agent("Geographer", instructions="Be brief.", model=kind(model=model, openai_client=client))
    question = "Which country is Oslo the capital of?"
    whole = await Runner.run(agent, question)
    streaming = Runner.run_streamed(agent, question)
    deltas = [event.data.delta async for event in streaming.stream_events()
              if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
    further = await Runner.run(agent, [*whole.to_input_list(), {"role": "user", "content": "And of which is Rome?"}])
    found = {"whole": whole.final_output, "streamed": streaming.final_output, "deltas": deltas,
             "further": further.final_output,
             "titles": [note.title for item in whole.new_items for part in item.raw_item.content
                        for note in part.annotations],
             "tokens": whole.context_wrapper.usage.total_tokens}
    if kind is OpenAIResponsesModel:
        found["kept"] = (await Runner.run(agent, "And of which is Rome?",
                                          previous_response_id=whole.last_response_id)).final_output
    return found


async def main():
    set_tracing_disabled(True)
    url, model = sys.argv[1:]
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        print(json.dumps({kind.__name__: await asked(kind, client, model)
                          for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel)}))


asyncio.run(main())
