"""Chat logs of the OpenAI API, and published data sets of hallucinations. One module each."""

from calibrate.ingest.datasets import halueval, openai_chat, ragtruth, selfcheckgpt

FORMATS = (*halueval.FORMATS, *openai_chat.FORMATS, *ragtruth.FORMATS, *selfcheckgpt.FORMATS)
