"""A conversation with a server through popular clients: ``python openai_clients.py URL MODEL``.

Run in an environment with langchain-openai, litellm and llm. Prints one JSON object with each client's answer.
"""

import json
import os
import subprocess
import sys

QUESTION = "Why?"


def langchain(url: str, model: str) -> dict[str, object]:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

    chat = ChatOpenAI(base_url=url, api_key="none", model=model, max_tokens=8, temperature=0, max_retries=0)
    conversation = [SystemMessage("Be."), HumanMessage("a"), AIMessage("b"), HumanMessage(QUESTION)]
    embeddings = OpenAIEmbeddings(base_url=url, api_key="none", model=model, check_embedding_ctx_length=False)
    text = OpenAI(base_url=url, api_key="none", model=model, max_tokens=8, temperature=0, max_retries=0)
    return {
        "whole": chat.invoke(conversation).content,
        "streamed": "".join(chunk.content for chunk in chat.stream(conversation)),
        "logprobs": len(chat.bind(logprobs=True).invoke(QUESTION).response_metadata["logprobs"]["content"]),
        "text": text.invoke(QUESTION),
        "embedding": embeddings.embed_query(QUESTION),
    }


def litellm(url: str, model: str) -> dict[str, object]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would be downloaded
    import litellm

    common = {"model": f"openai/{model}", "api_base": url, "api_key": "none"}
    asked = common | {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 8, "temperature": 0}
    chunks = litellm.completion(stream=True, **asked)
    return {
        "whole": litellm.completion(**asked).choices[0].message.content,
        "streamed": "".join(chunk.choices[0].delta.content or "" for chunk in chunks),
        "embedding": litellm.embedding(input=[QUESTION], **common).data[0]["embedding"],
    }


def llm(url: str, model: str, folder: str) -> dict[str, object]:
    with open(os.path.join(folder, "extra-openai-models.yaml"), "w", encoding="utf-8") as file:
        file.write(f"- model_id: headscope\n  model_name: {model}\n  api_base: {url}\n  api_key_name: none\n")
    environment = os.environ | {"LLM_USER_PATH": folder, "OPENAI_API_KEY": "none"}
    options = "-m headscope -o max_tokens 8 -o temperature 0 --key none".split()

    def ask(*more: str) -> str:
        command = ["llm", *options, *more, QUESTION]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    return {"streamed": ask(), "whole": ask("--no-stream")}


if __name__ == "__main__":
    url, model, folder = sys.argv[1:]
    print(
        json.dumps({"langchain": langchain(url, model), "litellm": litellm(url, model), "llm": llm(url, model, folder)})
    )
