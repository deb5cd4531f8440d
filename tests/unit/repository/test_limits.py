"""The numbers in docs/limits.md are those of the code."""

import re
from collections.abc import Callable

from helpers.files import ROOT
from model.drawing.drawing import MAX_SHOWN_BYTES
from model.drawing.trace import MAX_LOGITS, MAX_VOCABULARY
from model.lens.interventions import circuit
from model.serving.sequence import MAX_UNTAKEN_BYTES
from model.tokenizer.base import MAX_TOKEN_BYTES
from web import services
from web.api import auth, lens, mcp, routes, schema
from web.ask import checks, disk_cache, fields, question, question_runner
from web.edge import body_limit, gradio_queue, page_loads, parse_shares
from web.learn import bigram, lesson_request
from web.learn.routes import MAX_BIGRAMS, MAX_WAITING_BIGRAMS
from web.page.chat import MAX_MESSAGES
from web.runs.routes import MAX_FILE_WEIGHTS
from web.runs.run import MAX_ROLLOUT_BYTES, MAX_RUN_BYTES
from web.seams import uvicorn
from web.serving import chat_templates, engine_client, engines, template_worker
from web.settings import LEAST_BATCH, MEGABYTE, MIN_RUN_BYTES, MIN_RUN_PASS_BYTES, Limits
from web.training import routes as training_routes
from web.training import training_request, trainings

LIMITS = Limits()
HEADS = (48, 144)


def megabytes(n_bytes: float) -> str:
    return f"{round(n_bytes / MEGABYTE, 1):,g} MB"


def longest(weights: Callable[[int], int], most: int) -> str:
    """How many tokens models of ``HEADS`` may have if ``weights`` says how many weights a head has over so many."""
    one, other = (max(T for T in range(2_000) if n * weights(T) <= most) for n in HEADS)
    return f"{HEADS[0]} heads over {one} tokens, or {HEADS[1]} over {other}"


# How each row with a number begins, and how much it allows, in the order of the document.
EXPECTED: list[tuple[str, object]] = [
    (
        "texts that a model writes at once, on a CPU",
        f"{LEAST_BATCH} to {engines.MOST_BATCH}, as many as have keys and values of at most "
        + megabytes(engines.CACHE_BYTES),
    ),
    ("the same on a GPU", LEAST_BATCH),
    ("texts that wait for a model", LIMITS.max_waiting),
    ("seconds for a text", LIMITS.max_seconds),
    ("tokens of a text", LIMITS.max_new_tokens),
    ("prompts times", LIMITS.max_choices),
    ("stop strings", LIMITS.max_stop),
    ("characters of a prompt", LIMITS.max_prompt_characters),
    ("bytes of a token in a vocabulary", MAX_TOKEN_BYTES),
    ("messages of a conversation", MAX_MESSAGES),
    ("alternatives to each token", schema.MAX_TOP_LOGPROBS),
    ("characters of JSON", schema.MAX_TEMPLATE_OPTIONS),
    ("conversations that chat templates render", chat_templates.MAX_PROCESSES),
    ("of these, from one client", chat_templates.MAX_PROCESSES - 1),
    ("conversations that wait", chat_templates.MAX_WAITING),
    ("seconds in which a conversation is rendered", chat_templates.RENDER_SECONDS),
    ("memory of a process that renders", megabytes(template_worker.MAX_BYTES)),
    ("characters of a rendered", template_worker.MAX_CHARACTERS),
    (
        "bytes that an engine",
        f"{engine_client.MAX_TEXT_BYTES // 1024} KB, and {engine_client.MAX_TOKEN_BYTES // 1024} KB for each token",
    ),
    ("connections", LIMITS.max_connections),
    ("connections of a client", LIMITS.max_connections_per_address),
    ("seconds for which a connection waits", uvicorn.STALL_SECONDS),
    ("share of the event loop's time", f"1/{1 / parse_shares.SHARE:g}"),
    ("bytes of a request's head", f"{uvicorn.MAX_HEAD_BYTES // 1024} KB"),
    ("fields of a request's head", uvicorn.MAX_FIELDS),
    ("bytes of a body", LIMITS.max_body_bytes),
    (
        f"bytes of a client's bodies above {body_limit.LARGE_BODY_BYTES // 1024} KB that are read in a second",
        body_limit.BYTES_PER_SECOND,
    ),
    ("bodies that wait", body_limit.MAX_WAITING_BODIES),
    ("bytes in flight", f"{LIMITS.memory_budget_mb} MB"),
    ("attention weights in JSON", LIMITS.max_json_weights),
    ("answers of attention weights", routes.MAX_ANSWERS),
    ("whole texts read at once", LIMITS.max_attention_requests),
    ("texts read at training steps", services.SNAPSHOT_PLACES),
    (
        "calls of a client in Gradio's queue",
        f"{LIMITS.max_waiting}, and as many as `--max-batch`, by default {LEAST_BATCH}",
    ),
    ("arguments of a call of Gradio", gradio_queue.MAX_ARGUMENTS),
    ("values in its body", gradio_queue.MAX_VALUES),
    ("levels in a message to MCP", gradio_queue.MAX_DEPTH),
    ("bytes of a tool's answer", mcp.MAX_TOOL_ANSWER_BYTES),
    ("seconds for which an event of Gradio", gradio_queue.FOLLOWED_SECONDS),
    ("refused API keys", auth.MAX_REFUSALS),
    ("seconds for which texts, and trainings", LIMITS.grace_seconds),
    ("weights of all heads", megabytes(MAX_RUN_BYTES)),
    ("rollouts", megabytes(MAX_ROLLOUT_BYTES)),
    ("rows that are not recorded yet", megabytes(MAX_UNTAKEN_BYTES)),
    (
        "what is kept of all texts",
        f"{megabytes(MIN_RUN_BYTES + MIN_RUN_PASS_BYTES)}, and whatever memory nothing else uses",
    ),
    ("exact numbers and lessons", services.PAGE_PLACES),
    ("loads of the page", page_loads.N_PLACES),
    ("of these, from one client", 1),
    ("bigram models trained at once", MAX_BIGRAMS),
    ("bigram models that wait", MAX_WAITING_BIGRAMS),
    ("characters of a lesson's sentence", lesson_request.MAX_SENTENCE_CHARACTERS),
    ("characters of a text from which Learn", lesson_request.MAX_TRAINING_TEXT_CHARACTERS),
    ("different characters of a bigram", bigram.MAX_ALPHABET),
    ("steps of a bigram", lesson_request.MAX_BIGRAM_STEPS),
    ("questions computed at once", LIMITS.max_questions),
    ("questions that have begun", question_runner.MAX_BEGUN),
    ("of these, from one client", question_runner.MAX_BEGUN - 1),
    ("questions that wait", LIMITS.max_questions + LIMITS.max_waiting - question_runner.MAX_BEGUN),
    ("seconds of computing", LIMITS.max_question_seconds),
    ("float32 copies", f"{LIMITS.max_float32_mb:,} MB"),
    ("heads named in a question", lens.MAX_HEADS),
    ("bytes of the text in which Ask", fields.MAX_LONG_TEXT_BYTES),
    ("texts of a reference", lens.MAX_TEXTS),
    ("rows of a question about many prompts", fields.MAX_ROWS),
    ("bytes of the body of such a question", question.ROWS.max_bytes),
    ("numbers in the answer to it", LIMITS.max_json_weights),
    ("pairs of prompts", circuit.MAX_PAIRS),
    ("residual streams", megabytes(checks.MAX_STREAM_BYTES)),
    ("heads and MLPs between which edges", circuit.MAX_NODES),
    ("files with head roles", disk_cache.MAX_FILES),
    ("files with head scores", disk_cache.MAX_FILES),
    ("training steps from the Hub", f"{LIMITS.max_steps_mb:,} MB"),
    ("of these, downloaded", LIMITS.max_scored_steps),
    ("trainings at once", LIMITS.max_trainings),
    ("trainings that wait", LIMITS.max_waiting_trainings),
    ("bytes of a text", LIMITS.max_training_bytes),
    ("different characters in it", training_request.MAX_TRAINING_ALPHABET),
    (
        "seconds for the text to arrive",
        f"{training_routes.UPLOAD_GRACE_SECONDS}, and one for each {training_routes.MIN_UPLOAD_RATE // 1000} KB, up to "
        f"{training_routes.UPLOAD_SECONDS}",
    ),
    ("weights of a model", LIMITS.max_training_weights),
    ("seconds of a training", LIMITS.max_training_seconds),
    ("memory of a training", f"{LIMITS.max_training_megabytes:,} MB"),
    ("trained models", trainings.MAX_KEPT_TRAININGS),
    ("minutes for which a trained model is kept", LIMITS.max_trained_minutes),
    ("of these, after its page was closed", trainings.KEPT_SECONDS // 60),
    (
        "attention weights that a notebook draws",
        f"{megabytes(MAX_SHOWN_BYTES)} in half precision: {longest(lambda T: T * (T + 1), MAX_SHOWN_BYTES)}",
    ),
    ("the same of an encoder", f"{megabytes(MAX_SHOWN_BYTES)}: {longest(lambda T: 2 * T**2, MAX_SHOWN_BYTES)}"),
    (
        "layers times heads",
        f"{MAX_FILE_WEIGHTS // 1_000_000} M: {longest(lambda T: T**2, MAX_FILE_WEIGHTS)}",
    ),
    ("logits in a drawing", f"{MAX_LOGITS:,}, of a vocabulary of at most {MAX_VOCABULARY:,}"),
]


def test_every_number_in_the_tables_is_the_codes() -> None:
    lines = (ROOT / "docs" / "limits.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = [(name, most) for name, most, *_ in cells if re.search(r"\d", most)]
    assert len(rows) == len(EXPECTED)
    for (name, most), (begins, allowed) in zip(rows, EXPECTED, strict=True):
        said = allowed if isinstance(allowed, str) else f"{allowed:,.0f}"
        assert (name[: len(begins)], most) == (begins, said)
