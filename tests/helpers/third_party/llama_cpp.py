"""llama.cpp opens a GGUF file: ``python llama_cpp.py FILE``, in an environment with xllamacpp.

Reads ``{"text", "ids", "n_probs"}`` as JSON and prints the token ids of the text, and after each of the first ``n`` ids
the ``n_probs`` largest log-probabilities, ``{token id: logprob}``; none where the likeliest token is a part of a
character, which llama.cpp reports with the next one.
"""

import json
import sys
import urllib.request

if __name__ == "__main__":
    import xllamacpp

    asked = json.load(sys.stdin)
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.warmup = False
    server = xllamacpp.Server(params)
    body = json.dumps({"content": asked["text"], "add_special": True, "parse_special": True}).encode()
    request = urllib.request.Request(f"{server.listening_address}/tokenize", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        text_ids = json.load(answer)["tokens"]

    def after(n: int) -> dict[int, float]:
        options = {"n_predict": 1, "temperature": 0, "n_probs": asked["n_probs"]}
        written = server.handle_completions({"prompt": asked["ids"][:n], **options})["choices"][0]
        steps = (written.get("logprobs") or {"content": []})["content"]
        return {top["id"]: top["logprob"] for step in steps for top in step["top_logprobs"]}

    print(json.dumps({"ids": text_ids, "logprobs": [after(n) for n in range(1, len(asked["ids"]) + 1)]}))
