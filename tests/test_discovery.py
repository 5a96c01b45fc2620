"""Where no model is named: what is found on this machine, which is taken, and what is said of it."""
import socket

import pytest

from ragbed.agents import discovery

OLLAMA = [{"id": name, "object": "model", "created": 1_780_200_000, "owned_by": "library"}
          for name in ("nomic-embed-text:latest", "bge-m3:latest", "llama3.2:3b", "qwen3:8b")]
LM_STUDIO = [{"id": name, "object": "model", "owned_by": "organization_owner"}
             for name in ("text-embedding-nomic-embed-text-v1.5", "qwen2.5-7b-instruct")]
LLAMA_CPP = [{"id": "models/gemma-3-4b-it-Q4_K_M.gguf", "object": "model", "owned_by": "llamacpp",
              "created": 1_791_322_978, "meta": {"n_ctx": 8192, "n_params": 3_880_099_328}}]
VLLM = [{"id": "Qwen/Qwen3-8B", "object": "model", "created": 1_739_421_415, "owned_by": "vllm",
         "root": "Qwen/Qwen3-8B", "parent": None, "max_model_len": 32768, "permission": []}]


@pytest.fixture
def listening(serve, monkeypatch):
    """Servers on loopback that list such models, in the order in which they are asked; None is a closed port."""
    for name in ("OPENAI_API_KEY", "RAGBED_MODEL", "RAGBED_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def start(*listed, script=()):
        ports = []
        for models in listed:
            if models is None:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    ports.append(free.getsockname()[1])
            else:
                server = serve(script)
                server.models = {"object": "list", "data": models} if isinstance(models, list) else models
                ports.append(int(server.url.split(":")[2].removesuffix("/v1")))
        monkeypatch.setattr(discovery, "PORTS", tuple(ports))
        return ports

    return start


@pytest.mark.parametrize(("models", "server", "chat"), [
    (OLLAMA, "Ollama", ("llama3.2:3b", "qwen3:8b")), (LM_STUDIO, "LM Studio", ("qwen2.5-7b-instruct",)),
    (LLAMA_CPP, "llama.cpp", ("models/gemma-3-4b-it-Q4_K_M.gguf",)), (VLLM, "vLLM", ("Qwen/Qwen3-8B",))])
def test_each_server_is_known_by_what_it_answers_and_its_embedders_are_no_choice(listening, models, server, chat):
    port, = listening(models)
    assert discovery.find_servers() == [discovery.LocalEndpoint(server, f"http://127.0.0.1:{port}/v1", chat)]


def test_the_first_server_with_a_chat_model_answers_and_the_line_says_what_else_there_is(listening):
    ports = listening(OLLAMA[:2], None, LLAMA_CPP, VLLM)
    lines = []
    assert discovery.default_model(lines.append) == \
        f"http://127.0.0.1:{ports[2]}/v1#models/gemma-3-4b-it-Q4_K_M.gguf"
    assert lines == [
        "no --model is given; this machine has llama.cpp (models/gemma-3-4b-it-Q4_K_M.gguf), vLLM (Qwen/Qwen3-8B). "
        f"Using http://127.0.0.1:{ports[2]}/v1#models/gemma-3-4b-it-Q4_K_M.gguf; choose another with --model NAME, "
        "or permanently with RAGBED_MODEL=NAME"]


@pytest.mark.parametrize("answer", [
    [], {"data": None}, ["no", {"id": 3}], {"error": "of another service"}, [{"id": "steals?key=1"}],
    [{"id": "a\x1b[2Jb"}]])
def test_what_is_no_list_of_usable_models_is_passed_over(listening, answer):
    listening(answer, None)
    lines = []
    assert discovery.default_model(lines.append) == "smollm2-135m"
    assert "no model server answers on this machine" in lines[0]


def test_a_key_goes_before_servers_and_a_name_in_the_environment_before_all(listening, monkeypatch):
    listening(VLLM)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    lines = []
    assert discovery.default_model(lines.append) == "openai:gpt-4o-mini"
    assert "OPENAI_API_KEY is set" in lines[0]
    assert "sk-0123456789" not in lines[0]
    monkeypatch.setenv("RAGBED_MODEL", "smollm2-135m")
    assert discovery.default_model(lines.append) == "smollm2-135m"
    assert len(lines) == 1


def test_ask_takes_what_it_finds(listening, ragbed, capitals):
    port, = listening(OLLAMA, script=["<Answer>Paris [1]</Answer>"])
    status, out, err = ragbed("ask", "What is the capital of France?", "--index", capitals, "--reasoning", "direct")
    assert (status, "Paris" in out) == (0, True)
    assert f"Using http://127.0.0.1:{port}/v1#llama3.2:3b" in err


def test_a_run_records_the_name_and_goes_on_with_it_when_the_server_is_gone(listening, ragbed, tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "Who?", "answer": "Ada"}\n')
    arguments = ("run", "jsonl", tmp_path / "q.jsonl", "--condition", "closed-book", "--reasoning", "direct",
                 "--out", tmp_path, "--name", "found")
    port, = listening(OLLAMA, script=["<Answer>Ada</Answer>"])
    status, _, err = ragbed(*arguments)
    assert (status, "no --model is given" in err) == (0, True)
    assert f"- http://127.0.0.1:{port}/v1#llama3.2:3b\n" in (tmp_path / "found" / "config.yaml").read_text()
    listening(None)
    for more in ((), ("--journal", "replay")):
        status, _, err = ragbed(*arguments, *more)
        assert (status, "no --model is given" in err) == (0, False)
