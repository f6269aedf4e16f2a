"""Runs as LangSmith has them: made up, in the shapes that its SDK, LangChain and the OpenAI wrapper write."""

from __future__ import annotations

from typing import Any

PROJECT = "1f0e7a52-0000-4000-8000-00000000beef"


def run_id(trace: int, number: int) -> str:
    return f"{trace:08x}-0000-4000-8000-{number:012x}"


def run(trace: int, number: int, kind: str, name: str, *, parent: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A run that begins `number` seconds after its trace."""
    began = f"2026-03-0{trace}T12:00:{number:02d}.000001"
    return {
        "id": run_id(trace, number),
        "name": name,
        "start_time": began,
        "run_type": kind,
        "end_time": f"2026-03-0{trace}T12:00:30.5" if number == 0 else f"2026-03-0{trace}T12:00:{number + 1:02d}.0",
        "extra": {"metadata": {"revision_id": "r7"}},
        "inputs": {},
        "outputs": None,
        "parent_run_id": None if number == 0 else run_id(trace, parent or 0),
        "tags": [],
        "session_id": PROJECT,
        "trace_id": run_id(trace, 0),
        "dotted_order": f"20260301T120000000000Z{run_id(trace, 0)}",
        "status": "success",
        **fields,
    }


def message(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


TOKENS = [
    {"token": "In", "logprob": -0.25, "top_logprobs": [{"token": "In", "logprob": -0.25}]},
    {"token": " Paris", "logprob": -0.5, "top_logprobs": []},
]
RAG = [
    run(
        1,
        0,
        "chain",
        "rag",
        inputs={"question": "Where is the Louvre?"},
        outputs={"output": "In Paris"},
        tags=["prod", "eu"],
        extra={"metadata": {"thread_id": "t-9", "user_id": "u-3", "revision_id": "r7"}},
    ),
    run(
        1,
        1,
        "retriever",
        "Qdrant",
        inputs={"query": "Where is the Louvre?"},
        outputs={
            "documents": [
                {
                    "page_content": "The Louvre is in Paris.",
                    "metadata": {"source": "louvre.md", "score": 0.75},
                    "type": "Document",
                },
                {"page_content": "The Prado is in Madrid.", "metadata": {"source": "prado.md"}, "type": "Document"},
            ]
        },
    ),
    run(1, 2, "prompt", "ChatPromptTemplate", inputs={"question": "Where is the Louvre?"}),
    run(
        1,
        3,
        "llm",
        "ChatOpenAI",
        inputs={
            "messages": [
                [
                    message("SystemMessage", content="Answer from the context."),
                    message(
                        "HumanMessage", content="Context: The Louvre is in Paris.\n\nQuestion: Where is the Louvre?"
                    ),
                ]
            ]
        },
        outputs={
            "generations": [
                [
                    {
                        "text": "In Paris",
                        "generation_info": {"logprobs": {"content": TOKENS}},
                        "message": message(
                            "AIMessage", content="In Paris", response_metadata={"model_name": "gpt-4o-mini-2024-07-18"}
                        ),
                    }
                ]
            ],
            "llm_output": {"model_name": "gpt-4o-mini-2024-07-18"},
            "run": None,
            "type": "LLMResult",
        },
        extra={
            "metadata": {"ls_model_name": "gpt-4o-mini", "ls_provider": "openai"},
            "invocation_params": {"model": "gpt-4o-mini"},
        },
    ),
    run(1, 5, "parser", "StrOutputParser", outputs={"output": "In Paris"}),
]
ASKED = {"role": "user", "content": "Is the Louvre open?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "hours", "arguments": "{}"}}],
}
AGENT = [
    run(
        2,
        0,
        "chain",
        "agent",
        inputs={"messages": [ASKED]},
        outputs={"messages": [ASKED, {"role": "assistant", "content": "Until six."}]},
    ),
    run(
        2,
        1,
        "llm",
        "ChatOpenAI",
        inputs={"messages": [ASKED], "model": "gpt-4o"},
        outputs={
            "choices": [{"index": 0, "message": CALL, "finish_reason": "tool_calls"}],
            "model": "gpt-4o-2024-08-06",
        },
    ),
    run(2, 3, "tool", "hours", inputs={"input": "{}"}, outputs={"output": "Open from 9 to 18."}),
    run(
        2,
        5,
        "llm",
        "ChatOpenAI",
        inputs={"messages": [ASKED, CALL, {"role": "tool", "tool_call_id": "c1", "content": "Open from 9 to 18."}]},
        outputs={
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "Until six."}, "finish_reason": "stop"}
            ],
            "model": "gpt-4o-2024-08-06",
        },
    ),
]
PLAIN = [
    run(3, 0, "chain", "answer", inputs={"question": "Who painted it?"}, outputs={"answer": "Leonardo."}),
    run(
        3,
        1,
        "retriever",
        "search",
        inputs={"query": "Who painted it?"},
        outputs={"documents": [{"page_content": "Leonardo painted it."}]},
    ),
]
NO_TEXT = [
    run(4, 0, "llm", "ChatOpenAI", inputs={"messages": [ASKED]}, outputs={"choices": [{"index": 0, "message": CALL}]})
]
ALL = [*RAG, *AGENT, *PLAIN, *NO_TEXT]


def answer_id(trace: int, number: int) -> str:
    return f"{run_id(trace, 0).replace('-', '')}-{run_id(trace, number).replace('-', '')}"
