"""Finding the JSON in a reply. It lives in `rubricate.chat.reply_json`."""

from rubricate.chat.reply_json import JsonSpan, find_json, find_spans, whole_value

__all__ = ["JsonSpan", "find_json", "find_spans", "whole_value"]
